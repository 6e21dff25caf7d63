import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IConvectApi } from '../tokens';

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
