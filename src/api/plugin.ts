import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';

import { IConvectApi } from '../tokens';
import { createApi } from './client';

const api: JupyterFrontEndPlugin<IConvectApi> = {
  id: 'jupyterlab-convect:api',
  description: 'The client of the REST interface of jupyterlab-convect.',
  autoStart: true,
  provides: IConvectApi,
  activate: (app: JupyterFrontEnd) =>
    createApi(app.serviceManager.serverSettings)
};

export const apiPlugins = [api];
