import { until } from '../../__tests__/until';
import { FakeServer } from '../../runs/__tests__/server';
import { RunWatch } from '../runwatch';

const PATH = { path: 'a.pipeline' };

/** A server with this many ended runs of the file. */
function serverWith(count: number): FakeServer {
  const server = new FakeServer();
  for (let index = 0; index < count; index += 1) {
    server.put(`run-${String(index).padStart(3, '0')}`, 'succeeded', PATH);
  }
  return server;
}

async function watching(server: FakeServer): Promise<RunWatch> {
  const watch = new RunWatch(server.store, () => PATH.path);
  await until(() => watch.store.value.runs.length > 0 || !server.runs.size);
  return watch;
}

const shown = (watch: RunWatch) => watch.store.value.run?.id ?? null;

function close(watch: RunWatch, server: FakeServer): void {
  watch.dispose();
  server.store.dispose();
}

describe('RunWatch', () => {
  it('lists every earlier run, page by page, and shows the one that is chosen', async () => {
    const server = serverWith(170);
    const watch = await watching(server);
    const listed = () => watch.store.value.runs.length;
    for (const count of [30, 60, 90, 120, 150, 170]) {
      await until(() => listed() === count);
      expect(watch.store.value.hasMore).toBe(count < 170);
      watch.listMore();
    }
    watch.show('run-001');
    await until(() => shown(watch) === 'run-001');
    watch.show(null);
    expect(shown(watch)).toBeNull();
    close(watch, server);
  });

  it('shows a run of its file that goes on, wherever it was started', async () => {
    const server = serverWith(2);
    server.put('run-100', 'running', PATH);
    const watch = await watching(server);
    await until(() => shown(watch) === 'run-100');
    server.change('run-100', 'succeeded');
    await until(() => !watch.isLive);
    server.change('run-101', 'running', { path: 'other.pipeline' });
    server.change('run-102', 'queued', PATH);
    await until(() => shown(watch) === 'run-102');
    close(watch, server);
  });

  it('leaves who looks at an earlier run, or at none, in peace', async () => {
    const server = serverWith(3);
    const watch = await watching(server);
    watch.show('run-001');
    await until(() => shown(watch) === 'run-001');
    server.change('run-100', 'running', PATH);
    await until(() => watch.store.value.runs.length === 4);
    expect(shown(watch)).toBe('run-001');
    watch.show(null);
    server.change('run-100', 'running', { progress: 0.5 });
    await until(() => server.store.summary('run-100')?.progress === 0.5);
    expect(shown(watch)).toBeNull();
    server.change('run-101', 'running', PATH);
    await until(() => shown(watch) === 'run-101');
    close(watch, server);
  });

  it('shows nothing of another run while the one that is asked for is loaded', async () => {
    const server = serverWith(2);
    const watch = await watching(server);
    watch.show('run-000');
    await until(() => shown(watch) === 'run-000');
    watch.show('run-001');
    expect(shown(watch)).toBeNull();
    expect(watch.isLive).toBe(false);
    await until(() => shown(watch) === 'run-001');
    close(watch, server);
  });
});
