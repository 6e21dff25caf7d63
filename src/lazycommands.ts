import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { CATEGORY, takes } from './commands';
import { IConvectApi } from './tokens';
import { loaded } from './ui/lazy';

/** What pages and dialogs need of JupyterLab. */
export interface IPartsContext {
  app: JupyterFrontEnd;
  api: IConvectApi;
  documents: IDocumentManager;
  browser: IDefaultFileBrowser | null;
  trans: TranslationBundle;
}

/** What does the work of commands. */
export interface IParts {
  execute(command: string, args: ReadonlyPartialJSONObject): Promise<void>;
}

/** A plugin of commands for a file, by their labels; their parts are loaded with the first that is used. */
export function lazyCommands(options: {
  id: string;
  description: string;
  labels: (trans: TranslationBundle) => Record<string, string>;
  load: (context: IPartsContext) => Promise<IParts>;
}): JupyterFrontEndPlugin<void> {
  const { id, description, labels, load } = options;
  return {
    id,
    description,
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
      const path = trans.__('A notebook, script or pipeline');
      let parts: Promise<IParts> | undefined;
      for (const [command, label] of Object.entries(labels(trans))) {
        app.commands.addCommand(command, {
          label,
          describedBy: takes({ path }),
          execute: async args => {
            parts ??= loaded(() =>
              load({ app, api, documents, browser, trans })
            );
            parts.catch(() => (parts = undefined));
            return (await parts).execute(command, args);
          }
        });
        palette?.addItem({ command, category: CATEGORY });
      }
    }
  };
}
