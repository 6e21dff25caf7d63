import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import {
  createToolbarFactory,
  ICommandPalette,
  IToolbarWidgetRegistry,
  WidgetTracker
} from '@jupyterlab/apputils';
import { ICollaborativeContentProvider } from '@jupyter/collaborative-drive';
import { IDocumentManager } from '@jupyterlab/docmanager';
import {
  IDefaultFileBrowser,
  IFileBrowserFactory
} from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { IMainMenu } from '@jupyterlab/mainmenu';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { MenuSvg } from '@jupyterlab/ui-components';

import { CATEGORY, CommandIDs, takes } from '../commands';
import { IConvectApi, IPlanViewFactory, IRunStore } from '../tokens';
import type { ISettingsWords } from '../ui/settings';
import { nameSettings } from '../ui/settings';
// Needed at once: files may be open when JupyterLab starts. The canvas is not.
/* eslint-disable jupyter/prefer-lazy-imports */
import { addAlignMenu, addEditorCommands } from './commands';
import { CONTENT_TYPE, PipelineModelFactory } from './documentmodel';
import type { IEditorServices } from './factory';
import { PipelineWidgetFactory } from './factory';
import type { IDocument } from './schema';
import { pipelineIcon } from './icons';
import {
  EditorCommands,
  FACTORY,
  FILE_TYPE,
  isRunnable,
  kindOf,
  SUFFIX
} from './ids';
import { PipelineDoc } from './model';
import { PlanViewFactory } from './planview';
import type { IOpenPipeline } from './renames';
import { addToolbarItems } from './toolbar';
/* eslint-enable jupyter/prefer-lazy-imports */
import type { PipelineWidget } from './widget';

const PLUGIN = 'jupyterlab-convect:pipeline';

const editor: JupyterFrontEndPlugin<void> = {
  id: PLUGIN,
  description: 'Opens pipelines in a visual editor.',
  autoStart: true,
  requires: [IConvectApi, IRunStore, IDocumentManager, IRenderMimeRegistry],
  optional: [
    ICollaborativeContentProvider,
    ILayoutRestorer,
    IMainMenu,
    ISettingRegistry,
    IToolbarWidgetRegistry,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    runs: IRunStore,
    docManager: IDocumentManager,
    rendermime: IRenderMimeRegistry,
    collaboration: ICollaborativeContentProvider | null,
    restorer: ILayoutRestorer | null,
    menu: IMainMenu | null,
    settings: ISettingRegistry | null,
    toolbars: IToolbarWidgetRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    app.docRegistry.addFileType({
      name: FILE_TYPE,
      displayName: trans.__('Pipeline'),
      extensions: [SUFFIX],
      mimeTypes: ['application/json'],
      contentType: 'file',
      fileFormat: 'text',
      icon: pipelineIcon
    });
    collaboration?.sharedModelFactory.registerDocumentFactory(
      CONTENT_TYPE,
      PipelineDoc.create
    );
    app.docRegistry.addModelFactory(
      new PipelineModelFactory(collaboration !== null)
    );

    let images: readonly string[] = [];
    const services: IEditorServices = {
      api,
      runs,
      docManager,
      rendermime,
      trans,
      images: () => images,
      preferences: {},
      openStep: (run, step) =>
        void app.commands.execute(CommandIDs.openRun, { run, step }),
      offerNodes: ({ x, y }, args) => {
        const menu = new MenuSvg({ commands: app.commands });
        for (const command of [
          EditorCommands.addFiles,
          EditorCommands.addCommand
        ]) {
          menu.addItem({ command, args: { ...args } });
        }
        menu.aboutToClose.connect(() =>
          // What was chosen is executed first.
          requestAnimationFrame(() => menu.dispose())
        );
        menu.open(x, y);
      }
    };
    void settings?.load(PLUGIN).then(loaded => {
      nameSettings(loaded, settingsWords(trans));
      const read = () => {
        images = loaded.composite.images as string[];
        services.preferences = {
          isSnapping: loaded.composite.snapToGrid as boolean,
          isMinimapOn: loaded.composite.minimap as boolean
        };
      };
      read();
      loaded.changed.connect(read);
    }, console.warn);

    const factory = new PipelineWidgetFactory(
      {
        name: FACTORY,
        label: trans.__('Pipeline Editor'),
        fileTypes: [FILE_TYPE],
        defaultFor: [FILE_TYPE],
        modelName: 'pipeline',
        translator: translator ?? undefined,
        contentProviderId: collaboration ? 'rtc' : undefined,
        toolbarFactory:
          toolbars && settings
            ? createToolbarFactory(
                toolbars,
                settings,
                FACTORY,
                PLUGIN,
                translator ?? nullTranslator
              )
            : undefined
      },
      services
    );
    const tracker = new WidgetTracker<PipelineWidget>({
      namespace: 'jupyterlab-convect-pipeline'
    });
    factory.widgetCreated.connect((_, widget) => {
      void tracker.add(widget);
      widget.context.pathChanged.connect(() => void tracker.save(widget));
    });
    app.docRegistry.addWidgetFactory(factory);
    void restorer?.restore(tracker, {
      command: 'docmanager:open',
      args: widget => ({ path: widget.context.path, factory: FACTORY }),
      name: widget => widget.context.path
    });

    addEditorCommands(app, tracker, trans);
    addAlignMenu(app, trans);
    if (toolbars) {
      addToolbarItems(toolbars, app.commands, trans);
    }
    const { contents } = app.serviceManager;
    contents.fileChanged.connect((_, change) => {
      if (change.type === 'rename') {
        const open: IOpenPipeline[] = [];
        tracker.forEach(({ context, content }) =>
          open.push({ path: context.localPath, doc: content.session.doc })
        );
        void import('./renames').then(({ followRename }) =>
          followRename(contents, change, open, trans)
        );
      }
    });
    for (const key of ['undo', 'redo'] as const) {
      menu?.editMenu.undoers[key].add({
        id: EditorCommands[key],
        isEnabled: widget => tracker.has(widget)
      });
    }
  }
};

function settingsWords(trans: TranslationBundle): ISettingsWords {
  return {
    title: trans.__('Pipeline Editor'),
    description: trans.__('How pipelines are edited.'),
    properties: {
      toolbar: [
        trans.__('Toolbar of the editor'),
        trans.__('Items of the toolbar, to be moved, hidden or added.')
      ],
      snapToGrid: [
        trans.__('Snap to the grid'),
        trans.__('Whether nodes move in steps of the grid.')
      ],
      minimap: [
        trans.__('Overview'),
        trans.__('Whether the overview in the corner is shown.')
      ],
      images: [
        trans.__('Images'),
        trans.__('Container images to choose from in the properties of nodes.')
      ]
    }
  };
}

const creation: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:new-pipeline',
  description: 'Makes new pipelines, empty or from notebooks.',
  autoStart: true,
  requires: [IDocumentManager],
  optional: [
    ICommandPalette,
    IDefaultFileBrowser,
    IFileBrowserFactory,
    ILauncher,
    IMainMenu,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    docManager: IDocumentManager,
    palette: ICommandPalette | null,
    browser: IDefaultFileBrowser | null,
    browsers: IFileBrowserFactory | null,
    launcher: ILauncher | null,
    menu: IMainMenu | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const currentBrowser = () => browsers?.tracker.currentWidget ?? browser;
    const { contents } = app.serviceManager;

    app.commands.addCommand(EditorCommands.create, {
      label: args =>
        args.isPalette
          ? trans.__('New Pipeline')
          : args.isMenu
            ? trans.__('Pipeline')
            : trans.__('Generic pipeline editor'),
      caption: trans.__('Make a pipeline of notebooks, scripts and components'),
      icon: args => (args.isPalette ? undefined : pipelineIcon),
      describedBy: takes({
        cwd: trans.__('The folder'),
        path: trans.__('The file; one with a new name unless given'),
        document: trans.__('What to begin with, as JSON')
      }),
      execute: async ({ cwd, path, document }) => {
        const { createPipeline, emptyDocument, writePipeline } =
          await import('./create');
        if (path && document) {
          const content = JSON.parse(String(document)) as IDocument;
          return writePipeline(docManager, String(path), content);
        }
        const folder = String(cwd ?? currentBrowser()?.model.path ?? '');
        return createPipeline(docManager, folder, emptyDocument);
      }
    });
    app.commands.addCommand(EditorCommands.createFromFiles, {
      label: () => {
        const count = [...(currentBrowser()?.selectedItems() ?? [])].length;
        return trans._n(
          'New Pipeline from This File',
          'New Pipeline from These %1 Files',
          count
        );
      },
      icon: pipelineIcon,
      describedBy: takes(),
      isVisible: () => {
        const items = [...(currentBrowser()?.selectedItems() ?? [])];
        return (
          items.every(item => isRunnable(item.path)) &&
          items.some(item => kindOf(item.path) !== 'pipeline')
        );
      },
      execute: async () => {
        const { chainOf, createPipeline } = await import('./create');
        const files = [...(currentBrowser()?.selectedItems() ?? [])].map(item =>
          contents.localPath(item.path)
        );
        const folder = currentBrowser()?.model.path ?? '';
        return createPipeline(docManager, folder, name =>
          chainOf(name, files, contents.localPath(folder))
        );
      }
    });

    palette?.addItem({
      command: EditorCommands.create,
      category: CATEGORY,
      args: { isPalette: true }
    });
    launcher?.add({
      command: EditorCommands.create,
      category: CATEGORY,
      rank: 1
    });
    menu?.fileMenu.newMenu.addGroup(
      [{ command: EditorCommands.create, args: { isMenu: true } }],
      40
    );
  }
};

const planView: JupyterFrontEndPlugin<IPlanViewFactory> = {
  id: 'jupyterlab-convect:plan-view',
  description: 'Draws the plan of a run as a graph.',
  autoStart: true,
  optional: [ITranslator],
  provides: IPlanViewFactory,
  activate: (_: JupyterFrontEnd, translator: ITranslator | null) =>
    new PlanViewFactory(
      (translator ?? nullTranslator).load('jupyterlab_convect')
    )
};

export const pipelinePlugins = [editor, creation, planView];
