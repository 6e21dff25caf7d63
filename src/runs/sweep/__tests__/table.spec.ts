import { nullTranslator } from '@jupyterlab/translation';

import type { IRunSummary, ISweepView } from '../../../api';
import type { IColumn } from '../table';
import {
  columnsOf,
  csvOf,
  filtered,
  goalOf,
  labelOf,
  parseFilter,
  sorted
} from '../table';

const run = (
  id: string,
  parameters: IRunSummary['parameters'],
  metrics: IRunSummary['metrics'] = {}
) =>
  ({ id, state: 'succeeded', parameters, metrics }) as unknown as IRunSummary;

const runs = [
  run('a', { lr: 0.1, kind: 'x', fixed: 1 }, { loss: 3 }),
  run('b', { lr: 0.2, kind: 'y', fixed: 1 }),
  run('c', { lr: 0.05, kind: 'x', fixed: 1 }, { loss: 1 })
];
const view = { runs, space: { lr: [0.1, 0.2, 0.05] } } as unknown as ISweepView;
const columns = columnsOf(view);
const ids = (found: IRunSummary[]) => found.map(({ id }) => id).join('');

describe('the table as a file', () => {
  it('has every digit, and quotes what would be taken for two cells', () => {
    const run = {
      id: 'r1',
      state: 'succeeded',
      parameters: { name: 'a, "b"' },
      metrics: { loss: 0.123456789 }
    } as never;
    const columns: IColumn[] = [
      { id: 'p:name', kind: 'parameter', name: 'name' },
      { id: 'm:loss', kind: 'metric', name: 'loss' }
    ];
    const trans = nullTranslator.load('jupyterlab_convect');
    expect(csvOf([run], columns, trans)).toBe(
      'Run,name,loss\r\nr1,"a, ""b""",0.123456789\r\n'
    );
  });
});

describe('the table of a sweep', () => {
  it('has a column for what was swept or differs, and for each metric', () => {
    expect(columns.map(({ id }) => id)).toEqual([
      'state',
      'p:lr',
      'p:kind',
      'm:loss',
      'duration'
    ]);
  });

  it('tells a result from a parameter of the same name', () => {
    const trans = nullTranslator.load('jupyterlab_convect');
    const twins = columnsOf({
      runs: [run('a', { rows: 1 }, { rows: 2, loss: 3 })],
      space: { rows: [1] }
    } as unknown as ISweepView);
    expect(twins.map(column => labelOf(column, trans))).toEqual([
      'State',
      'rows',
      'rows (result)',
      'loss',
      'Duration'
    ]);
    expect(goalOf('min:loss')).toBe('m:loss');
    expect(goalOf(null)).toBeNull();
  });

  it('sorts numbers as numbers, what is missing last either way', () => {
    const by = (column: string, descending: boolean) =>
      ids(sorted(runs, columns, { column, descending }));
    expect(by('p:lr', false)).toBe('cab');
    expect(by('p:lr', true)).toBe('bac');
    expect(by('m:loss', false)).toBe('cab');
    expect(by('m:loss', true)).toBe('acb');
  });

  it.each([
    ['', 'abc'],
    ['lr>0.05', 'ab'],
    ['lr<=0.1', 'ac'],
    ['lr=0.1', 'a'],
    ['kind=x loss<2', 'c'],
    ['y', 'b'],
    ['nothing', ''],
    ['kind=x, loss<2', 'c'],
    ['loss > 2', 'a'],
    ['lr != 0.1', 'bc'],
    ['kind = "x", fixed == 1', 'ac'],
    ['x, 0.05', 'c']
  ])('filters by "%s"', (text, found) => {
    const filter = parseFilter(text, runs);
    expect(filter.unknown).toEqual([]);
    expect(ids(filtered(runs, columns, filter))).toBe(found);
  });

  it('sorts and compares integers of any length', () => {
    const digits = (text: string) => ({ $numberInteger: text });
    const large = [
      run('a', {}, { n: digits('1'.padEnd(401, '0')) }),
      run('b', {}, { n: 2.5 }),
      run('c', {}, { n: digits('9007199254740993') }),
      run('d', {}, { n: digits('9007199254740992') })
    ];
    const own = columnsOf({ runs: large, space: {} } as unknown as ISweepView);
    const by = (descending: boolean) =>
      ids(sorted(large, own, { column: 'm:n', descending }));
    expect(by(false)).toBe('bdca');
    expect(by(true)).toBe('acdb');
    const above = parseFilter('n>1e300', large);
    expect(ids(filtered(large, own, above))).toBe('a');
  });

  it('says which name of a filter no run has', () => {
    expect(parseFilter('lr>0.1, los<2', runs).unknown).toEqual(['los']);
  });

  it('keeps what is not finite last, and finds it by its name', () => {
    const diverged = [
      run('a', { lr: 1 }, { loss: NaN }),
      run('b', { lr: 2 }, { loss: 3 }),
      run('c', { lr: 3 }),
      run('d', { lr: 4 }, { loss: Infinity }),
      run('e', { lr: 5 }, { loss: -1 })
    ];
    const own = columnsOf({
      runs: diverged,
      space: { lr: [] }
    } as unknown as ISweepView);
    const by = (descending: boolean) =>
      ids(sorted(diverged, own, { column: 'm:loss', descending }));
    expect(by(false)).toBe('ebadc');
    expect(by(true)).toBe('beadc');
    const find = (text: string) =>
      ids(filtered(diverged, own, parseFilter(text, diverged)));
    expect(find('loss=nan')).toBe('a');
    expect(find('loss<5')).toBe('be');
    expect(find('loss!=3')).toBe('acde');
  });
});
