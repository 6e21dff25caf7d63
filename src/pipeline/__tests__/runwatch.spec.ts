import { Signal } from '@lumino/signaling';

import { until } from '../../__tests__/until';
import type { IRunSummary } from '../../api';
import type { IRunsModel } from '../../tokens';
import { RunWatch } from '../runwatch';

/** A server with this many runs of the file, the newest first. */
function serverWith(count: number): IRunsModel {
  const all = Array.from({ length: count }, (_, index) => ({
    id: `run-${index}`
  })) as IRunSummary[];
  const owner = {};
  return {
    runChanged: new Signal(owner),
    healing: new Signal(owner),
    api: {
      listRuns: async ({ limit }: { limit: number }) => ({
        runs: all.slice(0, limit),
        total: all.length
      }),
      run: async (id: string) => ({ id, state: 'succeeded', steps: {} })
    }
  } as unknown as IRunsModel;
}

describe('RunWatch', () => {
  it('lists every earlier run, page by page, and shows the one that is chosen', async () => {
    const watch = new RunWatch(serverWith(70), () => 'a.pipeline');
    const listed = () => watch.store.value.runs.length;
    await until(() => listed() === 30);
    expect(watch.store.value.hasMore).toBe(true);
    watch.listMore();
    await until(() => listed() === 60);
    watch.listMore();
    await until(() => listed() === 70);
    expect(watch.store.value.hasMore).toBe(false);
    watch.show('run-69');
    await until(() => watch.store.value.run?.id === 'run-69');
    watch.show(null);
    expect(watch.store.value.run).toBeNull();
    watch.dispose();
  });
});
