import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  ICommandPalette,
  IToolbarWidgetRegistry,
  ToolbarButton
} from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import type { NotebookPanel } from '@jupyterlab/notebook';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { duplicateIcon } from '@jupyterlab/ui-components';
import type { JSONObject } from '@lumino/coreutils';

import type { ISelection } from '../api';
import { CATEGORY, CommandIDs, several, takes } from '../commands';
import { convectIcon } from '../icons';
import { IConvectApi, IRunsOpener } from '../tokens';
import { runsMeant } from './context';
import { preferencesOf, preferenceWords } from './preferences';
import { loaded } from '../ui/lazy';
import { nameSettings } from '../ui/settings';
import { FILE_COMMANDS, menuButton } from '../ui/toolbarmenu';

const launching = () => import('./launching');

export const launch: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:launch',
  description: 'Runs notebooks and scripts as pipelines.',
  autoStart: true,
  requires: [IConvectApi, IRunsOpener, IDocumentManager],
  optional: [
    INotebookTracker,
    IDefaultFileBrowser,
    IStateDB,
    ICommandPalette,
    IToolbarWidgetRegistry,
    ISettingRegistry,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    opener: IRunsOpener,
    documents: IDocumentManager,
    notebooks: INotebookTracker | null,
    browser: IDefaultFileBrowser | null,
    state: IStateDB | null,
    palette: ICommandPalette | null,
    toolbars: IToolbarWidgetRegistry | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const { commands } = app;

    const settings = registry?.load(launch.id).then(
      loaded => {
        nameSettings(loaded, preferenceWords(trans));
        return loaded;
      },
      () => null
    );
    const preferences = async () =>
      preferencesOf((await settings)?.composite ?? {});
    const context = {
      ...{ app, api, opener, documents, state, trans },
      preferences
    };

    /** The files that are meant: named, selected in the file browser, or the current notebook. */
    const meant = (args: {
      paths?: unknown;
      path?: unknown;
      runtime?: unknown;
    }): string[] => {
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
      if (!current && args.runtime && browser) {
        return [...browser.selectedItems()].map(({ path }) => path);
      }
      return current ? [current.context.path] : [];
    };

    commands.addCommand(CommandIDs.runAsPipeline, {
      label: trans.__('Run as Pipeline…'),
      caption: trans.__('Run it somewhere else, without changing it'),
      icon: convectIcon,
      describedBy: takes({
        path: trans.__('A notebook, script or pipeline'),
        paths: several(trans.__('Several notebooks and scripts')),
        mode: {
          type: 'string',
          enum: ['only', 'from', 'upto'],
          description: trans.__('Which part of the pipeline')
        },
        node: trans.__('The node that the part is about'),
        of: trans.__('The run that the rest is taken from'),
        runtime: trans.__('Where to run it'),
        settings: {
          type: 'object',
          description: trans.__('Image and resources to begin with')
        }
      }),
      execute: async args => {
        const files = meant(args);
        const { launchFiles, launchPart } = await loaded(launching);
        if (args.mode) {
          const { mode, node, of } = args as { [name: string]: string };
          const select = { mode, node } as ISelection;
          return launchPart(context, files[0], { select, of });
        }
        const preset =
          typeof args.runtime === 'string'
            ? {
                runtime: args.runtime,
                settings: (args.settings ?? {}) as JSONObject
              }
            : undefined;
        return launchFiles(context, files, preset);
      }
    });

    commands.addCommand(CommandIDs.cloneRun, {
      label: trans.__('Change and Run Again…'),
      icon: duplicateIcon,
      describedBy: takes({
        run: trans.__('The id of the run; the one under the pointer')
      }),
      execute: async args => {
        const [id] = runsMeant(app, args);
        if (id) {
          const { launchLike } = await loaded(launching);
          await launchLike(context, id);
        }
      }
    });

    // Its place is in the settings; made here to have an icon and a word.
    toolbars?.addFactory<NotebookPanel>('Notebook', 'convect-run', panel => {
      const button = new ToolbarButton({
        icon: convectIcon,
        label: trans.__('Run as pipeline'),
        tooltip: trans.__('Run it somewhere else, without changing it'),
        onClick: () =>
          void commands.execute(CommandIDs.runAsPipeline, {
            path: panel.context.path
          })
      });
      // The form is on its way before the button is pressed.
      button.node.addEventListener(
        'pointerenter',
        () => void launching().catch(() => undefined),
        { once: true }
      );
      return button;
    });
    toolbars?.addFactory<NotebookPanel>('Notebook', 'convect-menu', panel =>
      menuButton({
        commands,
        ids: FILE_COMMANDS,
        label: trans.__('Schedule it, or make it callable'),
        args: () => ({ path: panel.context.path })
      })
    );
    palette?.addItem({ command: CommandIDs.runAsPipeline, category: CATEGORY });
  }
};
