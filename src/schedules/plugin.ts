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

const schedules: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:schedules',
  description: 'Runs by the clock.',
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
        'convect:show-schedules': trans.__('Show Schedules'),
        'convect:schedule': trans.__('Schedule…')
      },
      trans.__('A notebook, script or pipeline'),
      async () => {
        const { Parts } = await import('./parts');
        return new Parts({ app, api, documents, browser, trans });
      }
    );
  }
};

export const schedulesPlugins = [schedules];
