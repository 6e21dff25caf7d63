import { until } from '../../__tests__/until';
import type { State } from '../../api';
import type { Ending } from '../endings';
import { Endings } from '../endings';
import { FakeServer } from './server';

/** What is told of the ends of runs, in the order in which it is told. */
function listen(server: FakeServer): Ending[] {
  const told: Ending[] = [];
  new Endings(server.store).ended.connect((_, ending) => {
    told.push(ending);
  }, server);
  return told;
}

const soon = () => ({ ended: Date.now() / 1000 + 1 });

describe('Endings', () => {
  it('tells the end of what was seen going on, once', async () => {
    const server = new FakeServer();
    const told = listen(server);
    server.change('a', 'running');
    await until(() => server.store.isLive('a'));
    server.change('a', 'succeeded', soon());
    await until(() => told.length > 0);
    server.change('a', 'succeeded', { name: 'renamed' });
    server.change('b', 'succeeded', { ended: 1 });
    server.change('c', 'succeeded', soon());
    await until(() => told.length > 1);
    expect(told).toMatchObject([
      { id: 'a', state: 'succeeded' },
      { id: 'c', state: 'succeeded' }
    ]);
    server.store.dispose();
  });

  it('tells the failure of a run that nobody saw going on', async () => {
    const server = new FakeServer();
    const told = listen(server);
    server.change('short', 'failed', { ...soon(), reason: 'It broke.' });
    await until(() => told.length > 0);
    expect(told[0]).toMatchObject({
      id: 'short',
      step: null,
      reason: 'It broke.',
      lines: ['two', 'three', 'four']
    });
    server.store.dispose();
  });

  it.each(['endpoint', 'schedule'])(
    'tells of runs with the label %s only those that failed',
    async label => {
      const server = new FakeServer();
      const told = listen(server);
      const run = { ...soon(), labels: { [label]: 'score' } };
      server.change('good', 'succeeded', run);
      server.change('bad', 'failed', run);
      server.change('run', 'succeeded', soon());
      await until(() => told.length > 1);
      expect(told.map(({ id }) => id).sort()).toEqual(['bad', 'run']);
      server.store.dispose();
    }
  );

  it('finds out by asking when an event was missed', async () => {
    const server = new FakeServer();
    const told = listen(server);
    server.put('a', 'running');
    server.store.refresh();
    await until(() => server.store.isLive('a'));
    server.put('a', 'cancelled');
    server.store.refresh();
    await until(() => told.length > 0);
    expect(told).toMatchObject([{ id: 'a', state: 'cancelled' }]);
    server.store.dispose();
  });

  it('tells a sweep when it has ended, as it ended, with what failed', async () => {
    const server = new FakeServer();
    const told = listen(server);
    const sweep = (state: State, counts: object) => {
      const facts = { id: 's', name: 's', total: 3, ended: null };
      server.sweeps = [{ ...facts, state, counts } as never];
      server.store.refreshSweeps();
    };
    sweep('running', { running: 2, failed: 1 });
    await until(() => server.store.sweeps?.[0].state === 'running');
    server.change('s1', 'failed', { sweep: 's', ...soon() });
    await until(() => server.store.summary('s1') !== undefined);
    expect(told).toEqual([]);
    sweep('failed', { failed: 2, succeeded: 1 });
    await until(() => told.length > 0);
    expect(told).toMatchObject([
      { kind: 'sweep', id: 's', state: 'failed', failed: 2, total: 3 }
    ]);
    server.store.dispose();
  });
});
