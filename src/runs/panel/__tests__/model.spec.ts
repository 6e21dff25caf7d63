import { until } from '../../../__tests__/until';
import { FakeServer } from '../../__tests__/server';
import { PanelModel } from '../model';

/** A panel over these runs and sweeps, when all of it is loaded; ids sort by time. */
async function panelOf(
  fill: (server: FakeServer) => void
): Promise<{ panel: PanelModel; server: FakeServer }> {
  const server = new FakeServer();
  fill(server);
  const panel = new PanelModel(server.store);
  await until(() => panel.list.isReady && server.store.sweeps !== null);
  return { panel, server };
}

const sweep = (id: string, counts: object) =>
  ({ id, name: id, state: 'succeeded', counts, total: 2 }) as never;

const keys = (panel: PanelModel) =>
  Array.from({ length: panel.rowCount }, (_, index) => panel.key(index));

function close(panel: PanelModel, server: FakeServer): void {
  panel.dispose();
  server.store.dispose();
}

describe('PanelModel', () => {
  it('shows sweeps in their place in time, and their runs below them', async () => {
    const { panel, server } = await panelOf(server => {
      server.put('a', 'succeeded');
      server.put('c', 'failed', { sweep: 'b' });
      server.put('d', 'succeeded');
      server.sweeps = [sweep('b', { failed: 1 })];
    });
    expect(keys(panel)).toEqual(['run d', 'sweep b', 'run a']);
    panel.toggleSweep('b');
    await until(() => panel.rowCount === 4);
    expect(keys(panel)).toEqual(['run d', 'sweep b', 'run c', 'run a']);
    expect(keys(panel).map(key => panel.indexOf(key))).toEqual([0, 1, 2, 3]);
    expect(panel.row(2)).toMatchObject({ kind: 'run', nested: true });
    server.change('e', 'running');
    await until(() => panel.rowCount === 5);
    expect(keys(panel)[0]).toBe('run e');
    close(panel, server);
  });

  it('counts and finds what failed inside sweeps', async () => {
    const { panel, server } = await panelOf(server => {
      server.put('a', 'failed');
      server.put('c', 'failed', { sweep: 'b' });
      server.sweeps = [sweep('b', { failed: 1 })];
    });
    await until(() => panel.list.counts.failed === 2);
    panel.setFilter({ states: ['failed', 'lost'] });
    await until(() => panel.rowCount === 2 && panel.row(0).kind === 'run');
    expect(keys(panel)).toEqual(['run c', 'run a']);
    panel.setFilter({ states: [] });
    await until(() => keys(panel)[0] === 'sweep b');
    close(panel, server);
  });

  it('keeps what is pinned on top, and in its place in time', async () => {
    const { panel, server } = await panelOf(server => {
      server.put('a', 'succeeded', { labels: { pinned: '' } });
      server.put('c', 'succeeded', { sweep: 'b' });
      server.put('d', 'succeeded');
      server.sweeps = [sweep('b', { succeeded: 1 })];
    });
    await until(() => panel.top === 1);
    const sorted = ['pinned a', 'run d', 'sweep b', 'run a'];
    expect(keys(panel)).toEqual(sorted);
    expect(sorted.map(key => panel.indexOf(key))).toEqual([0, 1, 2, 3]);
    server.change('c', 'succeeded', { labels: { pinned: '' } });
    await until(() => panel.top === 2);
    expect(keys(panel).slice(0, 3)).toEqual(['pinned c', 'pinned a', 'run d']);
    panel.setFilter({ isPinned: true });
    await until(() => keys(panel).join() === 'run c,run a');
    close(panel, server);
  });

  it('leaves out a sweep whose runs are all deleted', async () => {
    const { panel, server } = await panelOf(server => {
      server.put('a', 'succeeded');
      server.sweeps = [sweep('s', {})];
    });
    expect(keys(panel)).toEqual(['run a']);
    close(panel, server);
  });

  it('marks all runs up to a line, and all of them', async () => {
    const { panel, server } = await panelOf(server =>
      ['a', 'b', 'c', 'd'].forEach(id => server.put(id, 'succeeded'))
    );
    panel.moveTo(3);
    panel.selectTo(1);
    expect([...panel.selection].sort()).toEqual(['a', 'b', 'c']);
    panel.select('b', 'toggle');
    expect([...panel.selection].sort()).toEqual(['a', 'c']);
    panel.clearSelection();
    expect(panel.selection.size).toBe(0);
    panel.selectAll();
    expect(panel.selection.size).toBe(4);
    server.delete('a');
    expect(panel.selection.size).toBe(3);
    close(panel, server);
  });

  it('asks for nothing while nobody looks', async () => {
    const { panel, server } = await panelOf(server =>
      server.put('a', 'failed')
    );
    const asked = () => server.queries.filter(({ sweep }) => sweep === 'none');
    const before = asked().length;
    panel.setVisible(false);
    server.store.refresh();
    await until(() => server.store.liveCount === 0);
    panel.list.refresh();
    expect(asked()).toHaveLength(before);
    server.put('b', 'failed');
    panel.setVisible(true);
    await until(() => panel.rowCount === 2);
    expect(asked()).toHaveLength(before + 1);
    close(panel, server);
  });
});
