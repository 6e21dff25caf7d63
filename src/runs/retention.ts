import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IConvectApi } from '../tokens';
import type { ISettingsWords } from './settings';

/** Delete the runs that the user's settings do not want kept; what cannot be deleted stays. */
export async function prune(
  api: IConvectApi,
  settings: ReadonlyPartialJSONObject
): Promise<void> {
  const keep_days = Number(settings.keepDays ?? 0);
  const keep_runs = Number(settings.keepRuns ?? 0);
  if (keep_days > 0 || keep_runs > 0) {
    await api.pruneRuns({ keep_days, keep_runs }).catch(() => undefined);
  }
}

/** What the settings are called. */
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
          'Of more runs, the oldest are deleted when JupyterLab starts, unless they are pinned; 0 keeps them all.'
        )
      ]
    }
  };
}
