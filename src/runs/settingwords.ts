import type { TranslationBundle } from '@jupyterlab/translation';

import type { ISettingsWords } from '../ui/settings';

/** What the settings of the panel are called. */
export function retentionWords(trans: TranslationBundle): ISettingsWords {
  return {
    title: trans.__('Runs'),
    description: trans.__('The panel of runs, and how long runs are kept.'),
    properties: {
      keepDays: [
        trans.__('Keep runs for days'),
        trans.__(
          'Older runs are deleted when JupyterLab starts, unless they are pinned; 0 keeps them.'
        )
      ],
      keepRuns: [
        trans.__('Keep the newest runs'),
        trans.__(
          'If there are more runs, the oldest are deleted when JupyterLab starts, unless they are pinned; 0 keeps them all.'
        )
      ]
    }
  };
}

/** What the settings of the pages of runs are called. */
export function pageWords(trans: TranslationBundle): ISettingsWords {
  return {
    title: trans.__('Pages of Runs'),
    description: trans.__('How the pages of runs are opened.'),
    properties: {
      openOnRun: [
        trans.__('Show a run when it begins'),
        trans.__(
          'Its page opens beside the notebook. A pipeline shows it in its editor.'
        )
      ]
    }
  };
}

/** What the settings of notifications are called. */
export function notificationWords(trans: TranslationBundle): ISettingsWords {
  return {
    title: trans.__('Notifications of Runs'),
    description: trans.__('How you are told that a run has ended.'),
    properties: {
      notifyInLab: [
        trans.__('Notify in JupyterLab when a run ends'),
        trans.__('With what failed and the last lines of its log.')
      ],
      notifyInBrowser: [
        trans.__('Also show a notification of the browser'),
        trans.__('The browser asks for permission.')
      ]
    }
  };
}
