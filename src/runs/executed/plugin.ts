import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification, ToolbarButton } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { PathExt } from '@jupyterlab/coreutils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { NotebookPanel, NotebookWidgetFactory } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { downloadIcon, notebookIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IAttemptKey } from '../../api';
import { sentenceOf } from '../../api';
import { CommandIDs } from '../../commands';
import { convectIcon } from '../../icons';
import { IConvectApi, IRunsModel, IRunsOpener } from '../../tokens';
import { runsMeant } from '../context';
import { PageKind } from '../pagekind';
import { ExecutedDrive, keyOf, pathOf } from './drive';

const FACTORY = 'Executed Notebook';

export const executed: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:executed',
  description: 'Opens executed notebooks, read only, while they run too.',
  autoStart: true,
  requires: [
    IConvectApi,
    IRunsModel,
    IRunsOpener,
    IDocumentManager,
    NotebookPanel.IContentFactory,
    IEditorServices,
    IRenderMimeRegistry
  ],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    runs: IRunsModel,
    opener: IRunsOpener,
    documents: IDocumentManager,
    contentFactory: NotebookPanel.IContentFactory,
    editors: IEditorServices,
    rendermime: IRenderMimeRegistry,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const { commands, docRegistry, serviceManager, shell } = app;
    serviceManager.contents.addDrive(new ExecutedDrive(api));

    const changesPages = new PageKind(shell, 'changes', async id => {
      const { ChangesModel, ChangesPage } = await import('./changes');
      const [run, step, attempt] = id.split('/');
      const key = { run, step, attempt: Number(attempt) };
      return new ChangesPage(new ChangesModel(api, key), { commands, trans });
    });

    const toolbar = (panel: NotebookPanel) => {
      const key = keyOf(panel.context.path);
      const button = (
        name: string,
        options: { label: string; icon?: typeof convectIcon },
        work: (key: IAttemptKey) => unknown
      ) => ({
        name,
        widget: new ToolbarButton({
          label: options.label,
          tooltip: options.label,
          icon: options.icon,
          onClick: () => void (key && work(key))
        })
      });
      return [
        button('run', { label: trans.__('Run'), icon: convectIcon }, key =>
          opener.openRun(key.run, key)
        ),
        button(
          'changes',
          { label: trans.__('Compare with the source'), icon: notebookIcon },
          key => commands.execute(CommandIDs.compareWithSource, { ...key })
        ),
        button(
          'download',
          { label: trans.__('Download'), icon: downloadIcon },
          key => window.open(api.notebookUrl(key))
        )
      ];
    };

    // It has no file types, so that it is not offered for other notebooks.
    docRegistry.addWidgetFactory(
      new NotebookWidgetFactory({
        name: FACTORY,
        label: trans.__('Executed Notebook'),
        fileTypes: [],
        modelName: 'notebook',
        readOnly: true,
        preferKernel: false,
        canStartKernel: false,
        rendermime,
        contentFactory,
        mimeTypeService: editors.mimeTypeService,
        toolbarFactory: toolbar,
        translator: translator ?? undefined
      })
    );

    /** The step that is meant: the one named, else the most telling one with a notebook. */
    const locate = async (
      args: ReadonlyPartialJSONObject
    ): Promise<{ key: IAttemptKey; name: string }> => {
      const [run] = runsMeant(app, args);
      const { mostTelling } = await import('../page/model');
      const view = await api.run(run);
      const wanted = String(args.step ?? mostTelling(view));
      const planned =
        view.plan.steps.find(({ id }) => id === wanted) ?? view.plan.steps[0];
      const attempts = view.steps[planned.id]?.attempts.length ?? 1;
      const attempt = Number(args.attempt ?? Math.max(1, attempts));
      return {
        key: { run: view.id, step: planned.id, attempt },
        name: `${PathExt.basename(planned.path ?? planned.id, '.ipynb')}.executed.ipynb`
      };
    };

    const describedBy = {
      args: {
        type: 'object' as const,
        properties: {
          run: {
            type: 'string' as const,
            description: trans.__('The id of the run')
          },
          step: {
            type: 'string' as const,
            description: trans.__('A step of it')
          },
          attempt: {
            type: 'integer' as const,
            description: trans.__('The last one, unless it is given')
          },
          cell: {
            type: 'integer' as const,
            description: trans.__('The cell to show')
          }
        }
      }
    };

    commands.addCommand(CommandIDs.openExecuted, {
      label: trans.__('Open Executed Notebook'),
      icon: notebookIcon,
      describedBy,
      execute: async args => {
        try {
          const { key, name } = await locate(args);
          // Asked for first: a missing one is said in a sentence and not in a dialog.
          await api.notebook(key);
          const widget = documents.openOrReveal(pathOf(key, name), FACTORY);
          if (!(widget instanceof NotebookPanel)) {
            return;
          }
          await widget.context.ready;
          await widget.revealed;
          const { failedCell, follow } = await import('./live');
          if (!followed.has(widget)) {
            followed.add(widget);
            widget.title.icon = convectIcon.bindprops({
              stylesheet: 'mainAreaTab'
            });
            follow(widget, key, runs);
          }
          const cell =
            args.cell === undefined ? failedCell(widget) : Number(args.cell);
          if (cell >= 0) {
            widget.content.activeCellIndex = cell;
            await widget.content.scrollToItem(cell, 'smart');
          }
        } catch (error) {
          Notification.error(sentenceOf(error), { autoClose: 8000 });
        }
      }
    });
    const followed = new WeakSet<NotebookPanel>();

    commands.addCommand(CommandIDs.compareWithSource, {
      label: trans.__('Compare Executed Notebook with Source'),
      describedBy,
      execute: async args => {
        try {
          const { key } = await locate(args);
          await changesPages.open(`${key.run}/${key.step}/${key.attempt}`);
        } catch (error) {
          Notification.error(sentenceOf(error), { autoClose: 8000 });
        }
      }
    });
  }
};
