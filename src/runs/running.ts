import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { IRunningSessionManagers } from '@jupyterlab/running';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { sentenceOf } from '../api';
import { convectIcon } from '../icons';
import { IRunStore, IRunsOpener } from '../tokens';
import { stateLabel } from '../ui/states';

export const running: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:running',
  description:
    'Lists what runs now in the Running panel, with a way to stop it.',
  autoStart: true,
  requires: [IRunStore, IRunsOpener],
  // Jupyter Notebook has no such panel on some of its pages.
  optional: [IRunningSessionManagers, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    runs: IRunStore,
    opener: IRunsOpener,
    managers: IRunningSessionManagers | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const attempt = (work: Promise<unknown>) => {
      work.catch(error =>
        Notification.error(sentenceOf(error), { autoClose: 8000 })
      );
    };
    managers?.add({
      name: trans.__('Runs'),
      running: () =>
        runs.live.map(run => ({
          label: () => run.name,
          labelTitle: () => run.name,
          detail: () => stateLabel(trans, run.state),
          icon: () => convectIcon,
          open: () => void opener.openRun(run.id),
          shutdown: () => attempt(runs.api.stopRun(run.id))
        })),
      shutdownAll: () => attempt(runs.stopAll()),
      refreshRunning: () => runs.refresh(),
      runningChanged: runs.changed,
      shutdownLabel: trans.__('Stop'),
      shutdownAllLabel: trans.__('Stop All'),
      shutdownAllConfirmationText: trans.__('Stop all runs?')
    });
  }
};
