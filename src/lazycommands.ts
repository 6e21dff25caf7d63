import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import { CATEGORY, takes } from './commands';
import { IConvectApi } from './tokens';
import { loaded } from './ui/lazy';
import { PageKind } from './ui/pagekind';

/** What pages and dialogs need of JupyterLab. */
export interface IPartsContext {
  app: JupyterFrontEnd;
  api: IConvectApi;
  documents: IDocumentManager;
  browser: IDefaultFileBrowser | null;
  trans: TranslationBundle;
  /** Those that `pages` names, which are there before the parts are. */
  pages: Record<string, PageKind<Widget>>;
}

/** What does the work of commands. */
export interface IParts {
  execute(command: string, args: ReadonlyPartialJSONObject): Promise<void>;
  /** A page of one of the kinds. */
  page(id: string, kind: string): Promise<Widget>;
}

/** A plugin of commands for a file, by their labels; their parts are loaded with the first that is used. */
export function lazyCommands(options: {
  id: string;
  description: string;
  labels: (trans: TranslationBundle) => Record<string, string>;
  /** Kinds of pages, each with the command that opens one when it is given the id as `id`. */
  pages: Record<string, string>;
  load: (context: IPartsContext) => Promise<IParts>;
}): JupyterFrontEndPlugin<void> {
  const { id, description, labels, load } = options;
  return {
    id,
    description,
    autoStart: true,
    requires: [IConvectApi, IDocumentManager],
    optional: [
      ICommandPalette,
      IDefaultFileBrowser,
      ILayoutRestorer,
      ITranslator
    ],
    activate: (
      app: JupyterFrontEnd,
      api: IConvectApi,
      documents: IDocumentManager,
      palette: ICommandPalette | null,
      browser: IDefaultFileBrowser | null,
      restorer: ILayoutRestorer | null,
      translator: ITranslator | null
    ) => {
      const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
      const path = trans.__('A notebook, script or pipeline');
      const pages: Record<string, PageKind<Widget>> = {};
      const context = { app, api, documents, browser, trans, pages };
      let loading: Promise<IParts> | undefined;
      const parts = () => {
        loading ??= loaded(() => load(context));
        loading.catch(() => (loading = undefined));
        return loading;
      };
      for (const [kind, command] of Object.entries(options.pages)) {
        const made = new PageKind(app.shell, kind, async id =>
          (await parts()).page(id, kind)
        );
        pages[kind] = made;
        void restorer?.restore(made.tracker, {
          command,
          args: page => ({ id: made.idOf(page), kind }),
          name: page => made.idOf(page)
        });
      }
      for (const [command, label] of Object.entries(labels(trans))) {
        app.commands.addCommand(command, {
          label,
          describedBy: takes({ path }),
          execute: async args => {
            if (typeof args.id === 'string' && typeof args.kind === 'string') {
              // What is gone by now needs no page any more.
              await pages[args.kind].open(args.id).catch(() => null);
            } else {
              await (await parts()).execute(command, args);
            }
          }
        });
        palette?.addItem({ command, category: CATEGORY });
      }
    }
  };
}
