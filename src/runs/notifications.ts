import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { IRunStore, IRunsOpener } from '../tokens';
import type { Ending } from './endings';
import { Endings } from './endings';
import { whenNotLoaded } from '../ui/lazy';
import { nameSettings } from '../ui/settings';

export const notifications: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:notifications',
  description: 'Says when a run or a sweep ends, and why it failed.',
  autoStart: true,
  requires: [IRunStore, IRunsOpener],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    runs: IRunStore,
    opener: IRunsOpener,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    // The server may have got another version since the page was opened.
    let isTold = false;
    whenNotLoaded(() => {
      if (!isTold) {
        isTold = true;
        Notification.error(
          trans.__(
            'A part of Convect could not be loaded. Save your work and reload the page.'
          ),
          { autoClose: false }
        );
      }
    });
    let inLab = true;
    let inBrowser = false;
    registry?.load(notifications.id).then(
      settings => {
        const read = () => {
          inLab = settings.get('notifyInLab').composite !== false;
          inBrowser = settings.get('notifyInBrowser').composite === true;
          if (inBrowser && window.Notification?.permission === 'default') {
            void window.Notification.requestPermission();
          }
        };
        settings.changed.connect(read);
        read();
        void import('./settingwords').then(({ notificationWords }) =>
          nameSettings(settings, notificationWords(trans))
        );
      },
      () => undefined
    );

    const say = async (ending: Ending): Promise<void> => {
      const { state, kind, id, failed } = ending;
      const { detail, headline, message } = await import('./telling');
      const { notice, withdrawNotice } = await import('./notices');
      const isOnScreen = runs.isOnScreen(id);
      const open = () =>
        void (kind === 'sweep' ? opener.openSweep(id) : opener.openRun(id));
      if (isOnScreen || !inLab) {
        withdrawNotice(id);
      } else {
        const isWell = state === 'succeeded' || state === 'cached';
        notice(
          id,
          message(ending, trans),
          failed > 0 ? 'error' : isWell ? 'success' : 'info',
          { label: trans.__('Open'), callback: open }
        );
      }
      const isSeen = isOnScreen && document.visibilityState === 'visible';
      if (
        !isSeen &&
        inBrowser &&
        window.Notification?.permission === 'granted'
      ) {
        const shown = new window.Notification(headline(ending, trans), {
          body: detail(ending, trans),
          tag: id
        });
        shown.onclick = () => {
          window.focus();
          open();
        };
      }
    };
    const endings = new Endings(runs);
    endings.ended.connect((_, ending) => void say(ending), runs);
  }
};
