import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification, ToolbarButton } from '@jupyterlab/apputils';
import { IEditorServices } from '@jupyterlab/codeeditor';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { NotebookPanel, NotebookWidgetFactory } from '@jupyterlab/notebook';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { downloadIcon, notebookIcon } from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IAttemptKey } from '../../api';
import { fileOperation, sentenceOf } from '../../api';
import { CommandIDs, takes } from '../../commands';
import { convectIcon } from '../../icons';
import { IConvectApi, IRunStore, IRunsOpener } from '../../tokens';
import { runsMeant } from '../context';
import { PageKind } from '../../ui/pagekind';
import { ExecutedDrive, FACTORY, keyOf, pathOfFile } from './drive';
import type { IWanted } from './opening';

/** Bytes of the largest file that is opened here, and not downloaded. */
const LARGEST = 10e6;

export const executed: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:executed',
  description:
    'Opens executed notebooks, read only, while they run too, and files of runs.',
  autoStart: true,
  requires: [
    IConvectApi,
    IRunStore,
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
    runs: IRunStore,
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
      if (!key) {
        return []; // A notebook that a step made.
      }
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
          onClick: () => void work(key)
        })
      });
      return [
        button(
          'convect-run',
          { label: trans.__('Run'), icon: convectIcon },
          key => opener.openRun(key.run, key)
        ),
        button(
          'convect-changes',
          { label: trans.__('Compare with the source'), icon: notebookIcon },
          key => commands.execute(CommandIDs.compareWithSource, { ...key })
        ),
        button(
          'convect-download',
          { label: trans.__('Download'), icon: downloadIcon },
          key => window.open(api.url('notebook', key, { download: '1' }))
        )
      ];
    };

    // It has no file types, so that it is not offered for other notebooks.
    const factory = new NotebookWidgetFactory({
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
    });
    factory.widgetCreated.connect((_, panel) =>
      panel.addClass('jp-Convect-executed')
    );
    docRegistry.addWidgetFactory(factory);

    const wanted = (args: ReadonlyPartialJSONObject): IWanted => ({
      run: runsMeant(app, args)[0],
      step: args.step === undefined ? undefined : String(args.step),
      attempt: args.attempt === undefined ? undefined : Number(args.attempt),
      cell: args.cell === undefined ? undefined : Number(args.cell)
    });

    /** Do it and say in one sentence when it could not be done. */
    const attempt = async (work: () => Promise<unknown>): Promise<void> => {
      try {
        await work();
      } catch (error) {
        Notification.error(sentenceOf(error), { autoClose: 8000 });
      }
    };

    const whole = (description: string) => ({ type: 'integer', description });
    const args = {
      run: trans.__('The id of the run'),
      step: trans.__('A step of it'),
      attempt: whole(trans.__('The last one, unless it is given')),
      cell: whole(trans.__('The cell to show'))
    };

    commands.addCommand(CommandIDs.openExecuted, {
      label: trans.__('Open Executed Notebook'),
      icon: notebookIcon,
      describedBy: takes(args),
      execute: args =>
        attempt(async () => {
          const { openExecuted } = await import('./opening');
          await openExecuted(wanted(args), runs, documents);
        })
    });

    commands.addCommand(CommandIDs.openFile, {
      label: trans.__('Open File of Run'),
      describedBy: takes({
        ...args,
        file: trans.__('Where it lies below the attempt'),
        size: whole(trans.__('Large files are downloaded'))
      }),
      execute: args => {
        const { run, step = '', attempt = 1 } = wanted(args);
        const file = { run, step, attempt, file: String(args.file) };
        const [type] = docRegistry.getFileTypesForPath(file.file);
        const isNotebook = type?.contentType === 'notebook';
        const isShown = isNotebook || type?.contentType === 'file';
        if (isShown && Number(args.size ?? 0) <= LARGEST) {
          const factory = isNotebook ? FACTORY : undefined;
          documents.openOrReveal(pathOfFile(file), factory);
        } else {
          window.open(api.url(...fileOperation(run, file)));
        }
      }
    });

    commands.addCommand(CommandIDs.compareWithSource, {
      label: trans.__('Compare Executed Notebook with Source'),
      describedBy: takes(args),
      execute: args =>
        attempt(async () => {
          const { locate } = await import('./opening');
          const { key } = await locate(api, wanted(args));
          await changesPages.open(`${key.run}/${key.step}/${key.attempt}`);
        })
    });
  }
};
