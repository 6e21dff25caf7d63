import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ILauncher } from '@jupyterlab/launcher';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CATEGORY, CommandIDs } from '../commands';
import { convectIcon } from '../icons';
import { IConvectApi } from '../tokens';
import { RunsPanel } from './panel';

const panel: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:plugin',
  description: 'Lists the runs of every runtime in the left side bar.',
  autoStart: true,
  requires: [IConvectApi],
  optional: [ICommandPalette, ILauncher, ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    palette: ICommandPalette | null,
    launcher: ILauncher | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const widget = new RunsPanel(api, trans);
    widget.id = 'jp-convect-runs';
    widget.title.icon = convectIcon;
    widget.title.caption = trans.__('Runs');
    app.shell.add(widget, 'left', { rank: 300, type: 'Convect' });
    restorer?.add(widget, widget.id);

    app.commands.addCommand(CommandIDs.showRuns, {
      label: trans.__('Show Runs'),
      caption: trans.__('Show the runs of every runtime'),
      icon: convectIcon,
      describedBy: { args: { type: 'object', properties: {} } },
      execute: () => app.shell.activateById(widget.id)
    });
    palette?.addItem({ command: CommandIDs.showRuns, category: CATEGORY });
    launcher?.add({ command: CommandIDs.showRuns, category: CATEGORY });
  }
};

export const runsPlugins = [panel];
