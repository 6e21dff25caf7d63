import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILauncher } from '@jupyterlab/launcher';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CATEGORY, CommandIDs } from '../commands';
import { lazyCommands } from '../lazycommands';
import { IConvectApi } from '../tokens';
import { StatusItem } from './status';

/** The way to the page from the launcher, and what is free of this machine in the status bar. */
const entrances: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:cluster-entrances',
  description: 'Shows what is free of this machine, and leads to the cluster.',
  autoStart: true,
  requires: [IConvectApi],
  optional: [ILauncher, IStatusBar, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    launcher: ILauncher | null,
    statusBar: IStatusBar | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    launcher?.add({
      command: CommandIDs.showCluster,
      category: CATEGORY,
      rank: 20
    });
    if (statusBar) {
      const item = new StatusItem(api, app.commands, trans);
      statusBar.registerStatusItem(entrances.id, {
        item,
        align: 'right',
        rank: 20
      });
    }
  }
};

export const clusterPlugins = [
  lazyCommands({
    id: 'jupyterlab-convect:cluster',
    description: 'What there is to run on, who holds it, what could start now.',
    labels: trans => ({
      [CommandIDs.showCluster]: trans.__('Show Cluster')
    }),
    pages: { cluster: CommandIDs.showCluster },
    load: async context => {
      const { Parts } = await import('./parts');
      return new Parts(context);
    }
  }),
  entrances
];
