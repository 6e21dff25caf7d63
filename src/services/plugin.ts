import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { addLazyCommands } from '../commands';
import { IConvectApi } from '../tokens';

const services: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:services',
  description: 'What can be called, and what stays up.',
  autoStart: true,
  requires: [IConvectApi, IDocumentManager],
  optional: [ICommandPalette, IDefaultFileBrowser, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    documents: IDocumentManager,
    palette: ICommandPalette | null,
    browser: IDefaultFileBrowser | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    addLazyCommands(
      app,
      palette,
      {
        'convect:show-endpoints': trans.__('Show Services'),
        'convect:make-callable': trans.__('Make Callable…')
      },
      trans.__('A notebook, script or pipeline'),
      async () => {
        const { Parts } = await import('./parts');
        return new Parts({ app, api, documents, browser, trans });
      }
    );
  }
};

export const servicesPlugins = [services];
