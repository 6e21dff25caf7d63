import { Signal } from '@lumino/signaling';

import { until } from '../../../__tests__/until';
import type { IRunQuery, IRunSummary, ISweepSummary } from '../../../api';
import type { RunsModel } from '../../model';
import { PanelModel } from '../model';

const run = (id: string, sweep: string | null = null) =>
  ({ id, name: id, state: 'succeeded', sweep }) as IRunSummary;

const sweep = (id: string, counts: ISweepSummary['counts']) =>
  ({ id, name: id, state: 'succeeded', counts, total: 2 }) as ISweepSummary;

/** A panel over these runs and sweeps, when all of it is loaded. */
async function panelOf(
  runs: IRunSummary[],
  sweeps: ISweepSummary[] = []
): Promise<PanelModel> {
  const alone = runs.filter(each => !each.sweep);
  const source = {
    api: {
      listRuns: async ({ sweep, limit = 100, offset = 0 }: IRunQuery) => {
        const found =
          sweep === 'none' ? alone : runs.filter(each => each.sweep === sweep);
        return {
          runs: found.slice(offset, offset + limit),
          total: found.length,
          counts: {}
        };
      },
      sweeps: async () => sweeps,
      sweep: async (id: string) => ({
        runs: runs.filter(each => each.sweep === id)
      })
    }
  };
  for (const name of ['runChanged', 'sweepChanged', 'healing', 'changed']) {
    Object.assign(source, { [name]: new Signal(source) });
  }
  const panel = new PanelModel(source as unknown as RunsModel);
  let changes = 0;
  panel.changed.connect(() => (changes += 1));
  await until(() => panel.pages.isReady && changes > 1);
  return panel;
}

function kinds(panel: PanelModel): string[] {
  return Array.from(
    { length: panel.rowCount },
    (_, index) => panel.row(index).kind
  );
}

describe('PanelModel', () => {
  it('groups sweeps above the runs that belong to none', async () => {
    const panel = await panelOf(
      [run('a'), run('b'), run('c', 's')],
      [sweep('s', { succeeded: 1 })]
    );
    expect(kinds(panel)).toEqual(['sweeps', 'sweep', 'runs', 'run', 'run']);
    panel.toggleSweep('s');
    await until(() => kinds(panel)[2] === 'run');
    expect(await panel.runsOf('s')).toEqual(['c']);
    panel.dispose();
  });

  it('leaves out a sweep whose runs are all deleted', async () => {
    const panel = await panelOf([run('a')], [sweep('s', {})]);
    expect(kinds(panel)).toEqual(['run']);
    panel.dispose();
  });

  it('never has the keyboard on a heading', async () => {
    const panel = await panelOf(
      [run('a'), run('b'), run('c', 's')],
      [sweep('s', { succeeded: 1 })]
    );
    expect(panel.cursor).toBe(1);
    panel.moveTo(2);
    expect(panel.cursor).toBe(3);
    panel.moveTo(2);
    expect(panel.cursor).toBe(1);
    panel.moveTo(0);
    expect(panel.cursor).toBe(1);
    panel.moveTo(99);
    expect(panel.cursor).toBe(4);
    panel.dispose();
  });

  it('marks all runs up to a line', async () => {
    const panel = await panelOf([run('a'), run('b'), run('c'), run('d')]);
    panel.moveTo(2);
    panel.selectTo(0);
    expect([...panel.selection].sort()).toEqual(['a', 'b', 'c']);
    panel.select('b', 'toggle');
    expect([...panel.selection].sort()).toEqual(['a', 'c']);
    panel.clearSelection();
    expect(panel.selection.size).toBe(0);
    panel.dispose();
  });

  it('answers at once for any of very many runs', async () => {
    const many = Array.from({ length: 100000 }, (_, i) => run(`r${i}`));
    const panel = await panelOf(many);
    expect(panel.rowCount).toBe(100000);
    expect(panel.row(70000).kind).toBe('loading');
    panel.show(70000, 70020);
    await until(() => panel.row(70000).kind === 'run');
    expect(panel.key(70000)).toBe('run r70000');
    expect(panel.indexOf('run r70000')).toBe(70000);
    panel.dispose();
  });
});
