import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CATEGORY, CommandIDs, takes } from '../commands';
import { convectIcon } from '../icons';
import { IConvectApi, IRunStore } from '../tokens';
import { RunsPanel } from './panel';
import { nameSettings } from '../ui/settings';
import { RunStore } from './store';

export const runStore: JupyterFrontEndPlugin<IRunStore> = {
  id: 'jupyterlab-convect:run-store',
  description: 'The one copy of every run, over all runtimes.',
  autoStart: true,
  requires: [IConvectApi],
  provides: IRunStore,
  activate: (app: JupyterFrontEnd, api: IConvectApi) =>
    new RunStore(api, app.serviceManager.events)
};

export const panel: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:plugin',
  description: 'Lists the runs of every runtime in the left side bar.',
  autoStart: true,
  requires: [IRunStore],
  optional: [
    ICommandPalette,
    ILauncher,
    ILayoutRestorer,
    ISettingRegistry,
    ITranslator
  ],
  activate: (
    app: JupyterFrontEnd,
    runs: IRunStore,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    restorer: ILayoutRestorer | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const widget = new RunsPanel(runs, app.commands, trans);
    if (translator && !translator.languageCode.startsWith('en')) {
      void Promise.all([
        import('../ui/sentences'),
        import('../ui/sentences.json')
      ]).then(([{ learn }, table]) => {
        learn(table, trans);
        widget.update();
      });
    }
    registry?.load(panel.id).then(
      async settings => {
        const { prune } = await import('./retention');
        const { retentionWords } = await import('./settingwords');
        nameSettings(settings, retentionWords(trans));
        await prune(runs.api, settings.composite);
      },
      () => undefined
    );
    widget.id = 'jp-convect-runs';
    widget.title.icon = convectIcon;
    app.shell.add(widget, 'left', { rank: 300, type: 'Convect' });
    restorer?.add(widget, widget.id);

    const showCount = () => {
      const count = runs.liveCount;
      widget.title.label = count > 0 ? String(count) : '';
      widget.title.caption =
        count > 0
          ? trans._n('Runs: %1 is running', 'Runs: %1 are running', count)
          : trans.__('Runs');
    };
    runs.changed.connect(showCount, widget);
    showCount();

    app.commands.addCommand(CommandIDs.showRuns, {
      label: trans.__('Show Runs'),
      caption: trans.__('Show the runs of every runtime'),
      icon: convectIcon,
      describedBy: takes(),
      execute: () => app.shell.activateById(widget.id)
    });
    palette?.addItem({ command: CommandIDs.showRuns, category: CATEGORY });
    launcher?.add({
      command: CommandIDs.showRuns,
      category: CATEGORY,
      rank: 10
    });
  }
};
