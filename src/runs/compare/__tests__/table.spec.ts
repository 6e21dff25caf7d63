import { nullTranslator } from '@jupyterlab/translation';

import type { IPlanStep, IRunView } from '../../../api';
import {
  bestOf,
  differenceOf,
  environmentOf,
  linesOf,
  namesOf,
  toldApart,
  resultsOf,
  sameSources
} from '../table';

const trans = nullTranslator.load('jupyterlab_convect');

function view(...steps: Partial<IPlanStep>[]): IRunView {
  return {
    runtime: 'local',
    user: 'ada',
    git: { commit: '0123456789abcdef', branch: 'main' },
    plan: { name: 'p', steps: steps as IPlanStep[] }
  } as IRunView;
}

const notebook = (id: string): Partial<IPlanStep> => ({ id, kind: 'notebook' });
const script = (id: string): Partial<IPlanStep> => ({ id, kind: 'script' });

describe('comparing runs', () => {
  it('tells metrics from values, and keeps texts and NaN', () => {
    const run = {
      ...view(notebook('a'), notebook('b')),
      steps: {
        a: { metrics: { loss: 1 }, outputs: { rows: 3 } },
        b: { metrics: { loss: NaN }, outputs: { model: 'gbm' } }
      }
    } as unknown as IRunView;
    expect(linesOf([resultsOf(run, 'metrics')])).toEqual([
      { name: 'loss', values: ['NaN'], differs: false }
    ]);
    expect(linesOf([resultsOf(run, 'outputs')])).toEqual([
      { name: 'rows', values: ['3'], differs: false },
      { name: 'model', values: ['gbm'], differs: false }
    ]);
  });

  it('has a line for everything that any of them has, and marks what differs', () => {
    expect(linesOf([{ lr: 0.1, depth: 3 }, { lr: 0.2, depth: 3 }, {}])).toEqual(
      [
        { name: 'lr', values: ['0.1', '0.2', ''], differs: true },
        { name: 'depth', values: ['3', '3', ''], differs: true }
      ]
    );
    expect(linesOf([{ a: null }, {}])).toEqual([]);
  });

  it('tells runs of one name apart by what differs', () => {
    const lines = linesOf([{ lr: 0.1, depth: 3 }, { lr: 0.2, depth: 3 }, {}]);
    expect(lines.length).toBe(2);
    expect([0, 1, 2].map(index => toldApart(lines, index))).toEqual([
      'lr=0.1, depth=3',
      'lr=0.2, depth=3',
      ''
    ]);
    const run = (id: string, name: string, lr: number) => ({
      ...{ id, name },
      parameters: { lr, depth: 3 }
    });
    expect(
      namesOf([
        run('r1', 'train', 0.1),
        run('r2', 'train', 0.2),
        run('r3', 'train', 0.2),
        run('r4', 'report', 0.2)
      ])
    ).toEqual(['train lr=0.1', 'train lr=0.2 r2', 'train lr=0.2 r3', 'report']);
    const same = linesOf([{ lr: 0.1 }, { lr: 0.1 }]);
    expect(toldApart(same, 0)).toBe('');
  });

  it('tells environments step by step where there are several', () => {
    const one = environmentOf(
      view({ ...notebook('a'), image: 'i:1', digest: 'sha256:feedbeef' }),
      trans
    );
    expect(one).toMatchObject({
      Runtime: 'This machine',
      Image: 'i:1',
      'Git commit': '0123456789ab',
      'Digest of the source': 'feedbeef'
    });
    const two = environmentOf(
      view({ ...notebook('a'), image: 'i:1' }, script('b')),
      trans
    );
    expect(two).toMatchObject({ 'a: Image': 'i:1', 'b: Image': undefined });
  });

  it('pairs the sources of a step, or the only ones', () => {
    const pairs = (a: IRunView, b: IRunView) =>
      sameSources(a, b).map(([one, other]) => [one.id, other.id]);
    expect(
      pairs(
        view(notebook('a'), notebook('b'), script('c')),
        view(notebook('b'), notebook('x'), script('c'))
      )
    ).toEqual([
      ['b', 'b'],
      ['c', 'c']
    ]);
    expect(pairs(view(notebook('a')), view(notebook('z')))).toEqual([
      ['a', 'z']
    ]);
    expect(pairs(view(notebook('a')), view(script('a')))).toEqual([]);
  });

  it('marks the best of numbers only where a name says what that is', () => {
    expect(bestOf([0.3, 0.1, 0.2], 'min')).toBe(1);
    expect(bestOf([0.3, 0.1, 0.2], 'max')).toBe(0);
    expect(bestOf([0.3, 0.1], undefined)).toBeNull();
    expect(bestOf([NaN, 0.1, -Infinity, 0.2], 'min')).toBe(1);
    expect(bestOf([0.1, 0.1, 0.2], 'min')).toBeNull();
    expect(bestOf([0.1, NaN], 'min')).toBeNull();
  });

  it('says how far numbers are apart', () => {
    expect(differenceOf([0.5, 0.52])).toBe('+0.02 (+4 %)');
    expect(differenceOf([0.52, 0.5])).toBe('−0.02 (−3.85 %)');
    expect(differenceOf([3, 1, 2])).toBe('+2 (+200 %)');
    expect(differenceOf([0, 1])).toBe('+1');
    expect(differenceOf([1, NaN])).toBe('');
    expect(differenceOf([1, 1])).toBe('0');
  });
});
