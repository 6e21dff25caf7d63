import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  IToolbarWidgetRegistry,
  Notification,
  ToolbarButton
} from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookTracker } from '@jupyterlab/notebook';
import type { Contents } from '@jupyterlab/services';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { duplicateIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONValue } from '@lumino/coreutils';

import type { IRequest } from '../api';
import { sentenceOf } from '../api';
import { CATEGORY, CommandIDs } from '../commands';
import { convectIcon } from '../icons';
import { IConvectApi, IRunsModel, IRunsOpener } from '../tokens';
import { runsMeant } from './context';
import type { Begun, IChoice, ISubject, RunForm } from './dialog';

const MEMORY = 'jupyterlab-convect:choice';

export const launch: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:launch',
  description: 'Runs notebooks and scripts as pipelines.',
  autoStart: true,
  requires: [IConvectApi, IRunsModel, IRunsOpener, IDocumentManager],
  optional: [
    INotebookTracker,
    IDefaultFileBrowser,
    IStateDB,
    ICommandPalette,
    IToolbarWidgetRegistry,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    runs: IRunsModel,
    opener: IRunsOpener,
    documents: IDocumentManager,
    notebooks: INotebookTracker | null,
    browser: IDefaultFileBrowser | null,
    state: IStateDB | null,
    palette: ICommandPalette | null,
    toolbars: IToolbarWidgetRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const { commands, serviceManager } = app;
    const { contents } = serviceManager;

    /** Show the form, begin what is chosen, and remember it. */
    const ask = async (subject: ISubject, given?: IChoice): Promise<void> => {
      const { RunDialog, RunForm } = await import('./dialog');
      const key = subject.path && `${MEMORY}:${subject.path}`;
      const remembered = key && !given && (await state?.fetch(key));
      const form = new RunForm(api, subject, trans, {
        choice: given ?? ((remembered || null) as IChoice | null),
        save: unsaved(subject.path)
      });
      const dialog = new RunDialog(form);
      const answer = await dialog.ask();
      dialog.dispose();
      if (answer && key) {
        const choice = form.choice as unknown as ReadonlyPartialJSONValue;
        await state?.save(key, choice);
      }
      if (answer && 'begun' in answer) {
        tell(answer.begun);
      } else if (answer) {
        await showAsPipeline(form);
      }
      form.dispose();
    };

    /** How to save a file that is open and has changed; undefined when it has not. */
    const unsaved = (path: string | null) => {
      const widget = path ? documents.findWidget(path) : undefined;
      const context = widget && documents.contextForWidget(widget);
      return context?.model.dirty ? () => context.save() : undefined;
    };

    const tell = (begun: Begun): void => {
      runs.refresh();
      const open = () =>
        begun.kind === 'sweep'
          ? opener.openSweep(begun.id)
          : opener.openRun(begun.id);
      Notification.info(
        begun.kind === 'sweep'
          ? trans.__('The sweep %1 has begun.', begun.name)
          : trans.__('%1 runs now.', begun.name),
        {
          autoClose: 6000,
          actions: [{ label: trans.__('Open'), callback: () => void open() }]
        }
      );
    };

    /** Keep what the form says as a file next to the source, and open it. */
    const showAsPipeline = async (form: RunForm): Promise<void> => {
      const { documentOf, isPipeline } = await import('./dialog');
      const { subject, outcome, parameters } = form;
      try {
        let path = subject.path ?? '';
        if (!isPipeline(path)) {
          const content = documentOf(subject, outcome, parameters);
          path = await freePath(contents, pipelinePath(subject));
          await contents.save(path, {
            type: 'file',
            format: 'text',
            content: `${JSON.stringify(content, null, 2)}\n`
          });
        }
        await commands.execute('docmanager:open', { path });
      } catch (error) {
        Notification.error(sentenceOf(error));
      }
    };

    /** The files that are meant: named, selected in the file browser, or the current notebook. */
    const meant = (args: { paths?: unknown; path?: unknown }): string[] => {
      if (Array.isArray(args.paths)) {
        return args.paths.map(String);
      }
      if (args.path) {
        return [String(args.path)];
      }
      const inBrowser = app.contextMenuHitTest(node =>
        node.classList.contains('jp-DirListing-item')
      );
      if (inBrowser && browser) {
        return [...browser.selectedItems()].map(({ path }) => path);
      }
      const current = notebooks?.currentWidget;
      return current ? [current.context.path] : [];
    };

    commands.addCommand(CommandIDs.runAsPipeline, {
      label: trans.__('Run as Pipeline…'),
      caption: trans.__('Run it somewhere else, without changing it'),
      icon: convectIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            path: {
              type: 'string',
              description: trans.__('A notebook, script or pipeline')
            },
            paths: {
              type: 'array',
              items: { type: 'string' },
              description: trans.__('Several notebooks and scripts')
            }
          }
        }
      },
      execute: async args => {
        const { isNotebook, isPipeline, isScript, pipelineOf } =
          await import('./dialog');
        const paths = meant(args).map(path => contents.localPath(path));
        const runnable = paths.filter(
          path => isNotebook(path) || isScript(path) || isPipeline(path)
        );
        if (runnable.length === 0) {
          Notification.warning(
            trans.__(
              'Open or select a notebook, a script or a pipeline first.'
            ),
            { autoClose: 5000 }
          );
        } else if (runnable.length === 1) {
          const [path] = runnable;
          await ask({ path, document: null, title: PathExt.basename(path) });
        } else {
          const title = trans._n('%1 file', '%1 files', runnable.length);
          const files = runnable.filter(path => !isPipeline(path));
          await ask({ path: null, document: pipelineOf(title, files), title });
        }
      }
    });

    commands.addCommand(CommandIDs.cloneRun, {
      label: trans.__('Change and Run Again…'),
      icon: duplicateIcon,
      describedBy: {
        args: {
          type: 'object',
          properties: {
            run: {
              type: 'string',
              description: trans.__(
                'The id of the run; the one under the pointer'
              )
            }
          }
        }
      },
      execute: async args => {
        const [id] = runsMeant(app, args);
        if (!id) {
          return;
        }
        try {
          const { choiceOf } = await import('./dialog');
          const { request, name } = await api.run(id);
          await ask(subjectOf(request, name), choiceOf(request));
        } catch (error) {
          Notification.error(sentenceOf(error), { autoClose: 8000 });
        }
      }
    });

    // Its place is in the settings; made here to have an icon and a word.
    toolbars?.addFactory<NotebookPanel>(
      'Notebook',
      'convect-run',
      panel =>
        new ToolbarButton({
          icon: convectIcon,
          label: trans.__('Run as pipeline'),
          tooltip: trans.__('Run it somewhere else, without changing it'),
          onClick: () =>
            void commands.execute(CommandIDs.runAsPipeline, {
              path: panel.context.path
            })
        })
    );
    palette?.addItem({ command: CommandIDs.runAsPipeline, category: CATEGORY });
  }
};

function subjectOf(request: IRequest, name: string): ISubject {
  const path = request.path ?? null;
  return {
    path,
    document: request.document ?? null,
    title: path ? PathExt.basename(path) : name
  };
}

function pipelinePath({ path, title }: ISubject): string {
  if (!path) {
    return `${title}.pipeline`;
  }
  const stem = PathExt.basename(path, PathExt.extname(path));
  return PathExt.join(PathExt.dirname(path), `${stem}.pipeline`);
}

/** The path itself, or one like it with a number, that no file has yet. */
async function freePath(
  contents: Contents.IManager,
  path: string
): Promise<string> {
  const folder = await contents.get(PathExt.dirname(path));
  const taken = new Set(
    (folder.content as Contents.IModel[]).map(item => item.name)
  );
  const extension = PathExt.extname(path);
  const stem = path.slice(0, path.length - extension.length);
  let free = path;
  for (let number = 2; taken.has(PathExt.basename(free)); number += 1) {
    free = `${stem}-${number}${extension}`;
  }
  return free;
}
