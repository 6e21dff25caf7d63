import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { IRunsModel, IRunsOpener } from '../tokens';
import { isBad } from '../ui/states';
import type { Ending } from './endings';
import { Endings } from './endings';
import { translateSettings } from './settings';

const SETTINGS = 'jupyterlab-convect:plugin';

export const notifications: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:notifications',
  description: 'Says when a run or a sweep ends, and why it failed.',
  autoStart: true,
  requires: [IRunsModel, IRunsOpener],
  optional: [ISettingRegistry, ITranslator],
  activate: (
    _: JupyterFrontEnd,
    runs: IRunsModel,
    opener: IRunsOpener,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    let inLab = true;
    let inBrowser = false;
    registry?.load(SETTINGS).then(
      settings => {
        const read = () => {
          translateSettings(settings, trans);
          inLab = settings.get('notifyInLab').composite !== false;
          inBrowser = settings.get('notifyInBrowser').composite === true;
          if (inBrowser && window.Notification?.permission === 'default') {
            void window.Notification.requestPermission();
          }
        };
        settings.changed.connect(read);
        read();
      },
      () => undefined
    );

    const say = async (ending: Ending): Promise<void> => {
      const { state, kind, id } = ending;
      const { detail, headline, message } = await import('./telling');
      const open = () =>
        void (kind === 'sweep' ? opener.openSweep(id) : opener.openRun(id));
      if (inLab) {
        const type = isBad(state)
          ? 'error'
          : state === 'cancelled'
            ? 'warning'
            : 'success';
        Notification.emit(message(ending, trans), type, {
          autoClose: isBad(state) ? 15000 : 6000,
          actions: [{ label: trans.__('Open'), callback: open }]
        });
      }
      if (inBrowser && window.Notification?.permission === 'granted') {
        const shown = new window.Notification(headline(ending, trans), {
          body: detail(ending),
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
