import { nullTranslator } from '@jupyterlab/translation';

import type { ILoopItems, IRunView } from '../../../api';
import { itemLines, loopsOf } from '../loops';

const trans = nullTranslator.load('jupyterlab_convect');

type Item = [value: unknown, state: string, outputs: Record<string, unknown>];

function page(...items: Item[]): ILoopItems {
  return {
    page: items.map(([value, state, outputs], index) => ({
      index,
      value,
      state,
      steps: {
        [`score.${index}`]: { item: [index], outputs, metrics: {} },
        [`score.${index}.deep.0`]: {
          item: [index, 0],
          outputs: { auc: 9 },
          metrics: {}
        }
      }
    }))
  } as unknown as ILoopItems;
}

describe('comparing loops', () => {
  it('finds the loops of all runs, without those in items of others', () => {
    const view = (...groups: { id: string }[]) =>
      ({
        groups: Object.fromEntries(groups.map(each => [each.id, each]))
      }) as unknown as IRunView;
    const loop = { id: 'score', item: [], items: 2 };
    const inner = { id: 'score.0.deep', item: [0], items: 1 };
    const group = { id: 'branch', item: [], items: null };
    expect(loopsOf([view(group), view(loop, inner), view(loop)])).toEqual([
      'score'
    ]);
  });

  it('puts items of the same value beside each other, whatever their order', () => {
    const lines = itemLines(
      [
        page(
          ['eu', 'succeeded', { auc: 0.5 }],
          ['us', 'succeeded', { auc: 0.7 }]
        ),
        page(['us', 'succeeded', { auc: 0.7 }], ['eu', 'failed', {}])
      ],
      trans
    );
    expect(lines).toEqual([
      { name: 'eu', values: ['Succeeded', 'Failed'], differs: true },
      {
        name: 'eu: auc',
        values: ['0.5', ''],
        differs: true,
        difference: ''
      },
      {
        name: 'us: auc',
        values: ['0.7', '0.7'],
        differs: false,
        difference: '0'
      }
    ]);
  });

  it('keeps items of one value apart, and those that only one run has', () => {
    const lines = itemLines(
      [
        page([1, 'succeeded', { v: 1 }], [1, 'succeeded', { v: 2 }]),
        page([1, 'succeeded', { v: 1 }]),
        undefined
      ],
      trans
    );
    expect(lines.map(({ name, values }) => [name, ...values])).toEqual([
      ['1', 'Succeeded', 'Succeeded', ''],
      ['1: v', '1', '1', ''],
      ['1', 'Succeeded', '', ''],
      ['1: v', '2', '', '']
    ]);
  });
});
