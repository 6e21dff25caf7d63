import { PromiseDelegate } from '@lumino/coreutils';

import { until } from '../../__tests__/until';
import { CompareModel } from '../compare';
import { FilteredRuns } from '../filtered';
import { RunModel } from '../page';
import { PanelModel } from '../panel/model';
import type { PageModel } from '../../ui';
import { SweepModel } from '../sweep/model';
import { FakeServer } from './server';

/** A server that was asked what goes on, and nothing since. */
async function readyServer(fill: (server: FakeServer) => void = () => null) {
  const server = new FakeServer();
  fill(server);
  let healed = false;
  server.store.healing.connect(() => (healed = true));
  await until(() => healed);
  server.asked.length = 0;
  return server;
}

const many = (server: FakeServer, count: number, sweep: string | null = null) =>
  Array.from({ length: count }, (_, index) => {
    const id = `r${String(index).padStart(4, '0')}`;
    server.put(id, 'queued', { sweep });
    return id;
  });

/** The page of a model has come into sight. */
function seen<T extends PageModel>(model: T): T {
  model.setShown(true);
  return model;
}

describe('RunStore', () => {
  it('asks once for each change, whatever is open', async () => {
    const server = await readyServer(server => {
      server.put('b', 'running');
      server.put('a', 'succeeded');
    });
    const { store } = server;
    const page = seen(new RunModel(store, 'b'));
    const again = seen(new RunModel(store, 'b'));
    const compare = seen(new CompareModel(store, ['a', 'b']));
    const panel = new PanelModel(store);
    await until(() => page.view !== null && compare.views.length === 2);
    // The panel's lists, and that of the runs that could be compared.
    const lists = () => server.asked.filter(each => each === 'list').length;
    await until(() => panel.list.isReady && !!store.sweeps && lists() === 3);
    server.asked.length = 0;
    server.change('b', 'failed');
    await until(() => page.view?.state === 'failed');
    expect(server.asked).toEqual(['run b']);
    expect(again.view).toBe(page.view);
    expect(compare.views[1]).toBe(page.view);
    expect(panel.list.at(0)?.state).toBe('failed');
    expect(store.counts).toMatchObject({ running: 0, failed: 1 });
    page.dispose();
    again.dispose();
    compare.dispose();
    panel.dispose();
    store.dispose();
  });

  it('asks for the end of a run at once, however often it changed before', async () => {
    const server = await readyServer(server => server.put('a', 'running'));
    const page = seen(new RunModel(server.store, 'a'));
    await until(() => page.view !== null);
    const waits = jest.spyOn(window, 'setTimeout');
    for (let turn = 0; turn < 8; turn += 1) {
      server.change('a', 'running');
      await new Promise(resolve => requestAnimationFrame(resolve));
    }
    waits.mockClear();
    server.change('a', 'succeeded');
    expect(waits.mock.calls.map(([, wait]) => wait)).toEqual([0]);
    await until(() => page.view?.state === 'succeeded');
    waits.mockRestore();
    page.dispose();
    server.store.dispose();
  });

  it('asks for many changed runs together', async () => {
    const server = await readyServer();
    const ids = many(server, 300, 's');
    ids.forEach(id => server.tell(id, 1, 'queued'));
    await until(() => server.store.live.length === 300);
    expect(server.asked.filter(each => each.startsWith('named'))).toHaveLength(
      server.asked.length
    );
    expect(server.asked.length).toBeLessThanOrEqual(3);
    expect(server.store.liveCount).toBe(300);
    server.store.dispose();
  });

  it('asks for no run only because it is not among the first live ones', async () => {
    const server = await readyServer(server => many(server, 300));
    const ids = [...server.runs.keys()];
    ids.forEach(id => server.tell(id, 1, 'queued'));
    await until(() => server.store.live.length === 300);
    server.asked.length = 0;
    server.store.refresh();
    await until(() => server.asked.includes('list'));
    await new Promise(resolve => setTimeout(resolve, 0));
    expect(server.asked).toEqual(['list']);
    server.store.dispose();
  });

  it('knows all live runs, and stops a sweep as one', async () => {
    const server = await readyServer(server => {
      many(server, 250, 's');
      server.put('z', 'running');
    });
    expect(server.store.liveCount).toBe(251);
    await server.store.stopAll();
    expect(server.asked).toEqual(['list', 'stop sweep s', 'stop z']);
    server.store.dispose();
  });

  it('finds out by asking when an event was missed', async () => {
    const server = await readyServer(server => server.put('a', 'running'));
    server.put('a', 'cancelled');
    server.store.refresh();
    await until(() => server.store.summary('a')?.state === 'cancelled');
    expect(server.store.isLive('a')).toBe(false);
    server.store.dispose();
  });

  it('ignores what is older than what it has', async () => {
    const server = await readyServer(server => server.put('a', 'queued'));
    const { store } = server;
    const old = server.put('a', 'running');
    const current = server.put('a', 'succeeded');
    store.take([current]);
    store.take([old]);
    expect(store.summary('a')?.state).toBe('succeeded');
    server.tell('a', old.seq, 'succeeded');
    expect(server.asked).toEqual([]);
    store.dispose();
  });

  it('lets an answer that comes late change nothing', async () => {
    const server = await readyServer(server => server.put('a', 'running'));
    const gate = new PromiseDelegate<void>();
    server.gate = gate.promise;
    const page = seen(new RunModel(server.store, 'a'));
    await until(() => server.asked.includes('run a'));
    server.gate = null;
    server.change('a', 'succeeded');
    server.store.take([server.runs.get('a')!]);
    gate.resolve();
    await until(() => page.view?.state === 'succeeded');
    expect(server.store.summary('a')?.state).toBe('succeeded');
    page.dispose();
    server.store.dispose();
  });

  it('says that a run is gone, and asks for it no more', async () => {
    const server = await readyServer(server => server.put('a', 'succeeded'));
    const page = seen(new RunModel(server.store, 'a'));
    await until(() => page.view !== null);
    server.delete('a');
    expect(page.isDeleted).toBe(true);
    expect(server.store.summary('a')).toBeUndefined();
    page.dispose();
    server.asked.length = 0;
    server.tell('a', 100, 'deleted');
    expect(server.asked).toEqual([]);
    server.store.dispose();
  });

  it('takes a compared run away for good, also while it is loaded', async () => {
    const server = await readyServer(server => {
      server.put('a', 'succeeded');
      server.put('b', 'succeeded');
    });
    const gate = new PromiseDelegate<void>();
    server.gate = gate.promise;
    const compare = seen(new CompareModel(server.store, ['a', 'b']));
    await until(() => server.asked.includes('run b'));
    compare.remove('b');
    gate.resolve();
    await until(() => compare.views.length === 1);
    expect(compare.ids).toEqual(['a']);
    compare.dispose();
    server.store.dispose();
  });

  it('compares one run with the one before it of the same file', async () => {
    const server = await readyServer(server => {
      ['a', 'b', 'c'].forEach(id => server.put(id, 'succeeded', { path: 'x' }));
      server.put('bb', 'succeeded', { path: 'y' });
    });
    const compare = seen(new CompareModel(server.store, ['c']));
    await until(() => compare.views.length === 2);
    expect(compare.ids).toEqual(['c', 'b']);
    compare.remove('b');
    expect(compare.ids).toEqual(['c']);
    compare.dispose();
    server.store.dispose();
  });

  it('asks for nothing that nobody sees, and once for all that changed when it is seen', async () => {
    const server = await readyServer(server => {
      many(server, 2, 's');
      server.sweeps = [{ id: 's', state: 'running', counts: {} } as never];
    });
    const run = new RunModel(server.store, 'r0000');
    const compare = new CompareModel(server.store, ['r0000', 'r0001']);
    const sweep = new SweepModel(server.store, 's');
    server.asked.length = 0;
    server.change('r0000', 'running');
    server.change('r0000', 'running');
    await until(() => server.store.summary('r0000')?.seq === 3);
    expect(server.asked).toEqual(['named 1']);
    expect(run.view).toBeNull();
    [run, compare, sweep].forEach(seen);
    await until(() => !!run.view && compare.views.length === 2);
    await until(() => sweep.view !== null);
    expect(server.asked.filter(each => each === 'run r0000')).toHaveLength(1);
    run.setShown(false);
    compare.setShown(false);
    sweep.setShown(false);
    server.asked.length = 0;
    server.change('r0000', 'succeeded');
    await until(() => server.store.summary('r0000')?.state === 'succeeded');
    expect(server.asked).toEqual(['named 1']);
    expect(run.view?.state).toBe('running');
    run.setShown(true);
    await until(() => run.view?.state === 'succeeded');
    run.dispose();
    compare.dispose();
    sweep.dispose();
    server.store.dispose();
  });

  it('keeps what did not change the same, so that nothing is drawn again', async () => {
    const server = await readyServer(server => server.put('a', 'running'));
    const page = seen(new RunModel(server.store, 'a'));
    await until(() => page.view !== null);
    const before = page.view;
    server.change('a', 'running', { progress: 0.5 });
    await until(() => page.view !== before);
    expect(page.view?.plan).toBe(before?.plan);
    expect(page.view?.steps.s).toBe(before?.steps.s);
    page.dispose();
    server.store.dispose();
  });

  it('shows the runs of a sweep as they change, without asking for all', async () => {
    const server = await readyServer(server => {
      many(server, 3, 's');
      server.sweeps = [
        { id: 's', state: 'running', counts: { queued: 3 } } as never
      ];
    });
    const sweep = seen(new SweepModel(server.store, 's'));
    await until(() => sweep.view !== null);
    server.asked.length = 0;
    server.change('r0001', 'succeeded', { metrics: { loss: 0.5 } });
    await until(() => sweep.view?.runs[1].state === 'succeeded');
    expect(server.asked).toEqual(['named 1']);
    expect(sweep.columns.map(({ id }) => id)).toContain('m:loss');
    sweep.dispose();
    server.store.dispose();
  });
});

describe('FilteredRuns', () => {
  it('takes in and leaves out what changes, without asking again', async () => {
    const server = await readyServer(server => {
      server.put('a', 'failed');
      server.put('c', 'failed');
      server.put('d', 'running');
    });
    const failed = new FilteredRuns(server.store, { states: ['failed'] });
    await until(() => failed.isReady);
    server.change('b', 'failed');
    server.change('d', 'failed');
    await until(() => failed.total === 4);
    expect(failed.first(9).map(({ id }) => id)).toEqual(['d', 'c', 'b', 'a']);
    server.change('c', 'queued');
    await until(() => failed.total === 3);
    server.delete('a');
    expect(failed.total).toBe(2);
    expect(server.asked.filter(each => each === 'list')).toHaveLength(1);
    failed.dispose();
    server.store.dispose();
  });

  it('loads only the part of 100 000 runs that is looked at', async () => {
    const server = await readyServer();
    const { store, queries } = server;
    server.api.listRuns = async (query = {}) => {
      queries.push(query);
      const { offset = 0, limit = 0 } = query;
      const runs = Array.from({ length: limit }, (_, index) => ({
        id: `r${100000 - offset - index}`,
        seq: 1,
        state: 'succeeded'
      }));
      return { runs: runs as never, total: 100000, counts: {}, exact: true };
    };
    queries.length = 0;
    const list = new FilteredRuns(store);
    await until(() => list.isReady);
    list.show(50000, 50020);
    await until(() => list.at(50010) !== undefined);
    expect(queries.map(({ offset }) => offset)).toEqual([0, 50000]);
    expect(list.total).toBe(100000);
    list.dispose();
    store.dispose();
  });

  it('asks again when something was to be asked again meanwhile', async () => {
    const server = await readyServer(server => server.put('a', 'running'));
    const gate = new PromiseDelegate<void>();
    server.gate = gate.promise;
    const list = new FilteredRuns(server.store);
    await until(() => server.asked.includes('list'));
    server.put('b', 'running');
    list.refresh();
    server.gate = null;
    gate.resolve();
    await until(() => list.total === 2);
    list.dispose();
    server.store.dispose();
  });

  it('never shows the answer to a question that was withdrawn', async () => {
    const server = await readyServer(server => {
      server.put('a', 'running', { name: 'slow' });
      server.put('b', 'running', { name: 'quick' });
    });
    const gate = new PromiseDelegate<void>();
    server.gate = gate.promise;
    const list = new FilteredRuns(server.store, { text: 'slow' });
    await until(() => server.asked.includes('list'));
    list.setFilter({ text: 'quick' });
    server.gate = null;
    gate.resolve();
    await new Promise(resolve => setTimeout(resolve, 0));
    expect(list.at(0)?.id).not.toBe('a');
    await until(() => list.at(0)?.id === 'b');
    list.dispose();
    server.store.dispose();
  });

  it('goes on after the last run that was counted', async () => {
    const server = await readyServer(server => many(server, 250));
    const { listRuns } = server.api;
    server.api.listRuns = async query => ({
      ...(await listRuns(query)),
      total: 100,
      exact: false
    });
    const list = new FilteredRuns(server.store);
    await until(() => list.isReady);
    expect([list.total, list.isExact]).toEqual([200, false]);
    list.show(150, 199);
    await until(() => list.total === 300);
    list.show(250, 299);
    await until(() => list.isExact);
    expect(list.total).toBe(250);
    list.dispose();
    server.store.dispose();
  });
});
