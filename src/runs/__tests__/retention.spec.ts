import type { IConvectApi } from '../../tokens';
import { prune } from '../retention';

describe('how long runs are kept', () => {
  const asked: unknown[] = [];
  const api = {
    pruneRuns: async (limits: unknown) => {
      asked.push(limits);
      throw new Error('away');
    }
  } as Partial<IConvectApi> as IConvectApi;

  it('is what the settings say; nothing is deleted without a limit', async () => {
    await prune(api, {});
    await prune(api, { keepDays: 0, keepRuns: 0 });
    expect(asked).toEqual([]);
    await prune(api, { keepDays: 30, keepRuns: 0 });
    expect(asked).toEqual([{ keep_days: 30, keep_runs: 0 }]);
  });
});
