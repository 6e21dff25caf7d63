import { Signal } from '@lumino/signaling';

import type { IRunSummary, ISweepView } from '../../../api';
import type { IRunStore } from '../../../tokens';
import { SweepModel } from '../model';

const run = (id: string, lr: number, loss: number) =>
  ({
    id,
    state: 'succeeded',
    parameters: { lr },
    metrics: { loss }
  }) as unknown as IRunSummary;

const view = (select: string | null, best: string | null, done = 3) =>
  ({
    done,
    runs: [run('a', 0.1, 0.5), run('b', 0.2, 0.1), run('c', 5, NaN)],
    space: { lr: [0.1, 0.2, 5] },
    select,
    best
  }) as unknown as ISweepView;

function modelOf(marked: (string | null)[] = [], done = 3): SweepModel {
  const owner = {};
  const signal = () => new Signal<object, never>(owner);
  return new SweepModel(
    {
      api: {
        sweep: async () => view('min:loss', 'b', done),
        updateSweep: async (
          _: string,
          { select }: { select: string | null }
        ) => {
          marked.push(select);
          return view(select, 'a');
        }
      },
      sweepsChanged: signal(),
      runsChanged: signal(),
      healing: signal(),
      take: () => undefined,
      summary: () => undefined
    } as unknown as IRunStore,
    's'
  );
}

const loaded = (model: SweepModel) =>
  new Promise<void>(resolve => {
    model.changed.connect(() => model.view && resolve());
    model.setShown(true);
  });

describe('SweepModel', () => {
  it('draws what the filter lets through, and marks by place among that', async () => {
    const model = modelOf();
    await loaded(model);
    model.setFilter('lr > 0.1');
    expect(model.points.map(({ id }) => id)).toEqual(['b', 'c']);
    model.mark([1]);
    expect(model.rows.map(({ id }) => id)).toEqual(['c']);
    model.setFilter('lrr>1');
    expect(model.unknownNames).toEqual(['lrr']);
    model.dispose();
  });

  it('shows the best that was chosen anew', async () => {
    const marked: (string | null)[] = [];
    const model = modelOf(marked);
    await loaded(model);
    await model.markBest('max:loss');
    expect(marked).toEqual(['max:loss']);
    expect(model.best).toBe('a');
    model.dispose();
  });

  it('sorts a metric by its better end first, then the other way, then not', async () => {
    const model = modelOf();
    await loaded(model);
    const order = (column: string) => {
      model.sortBy(column);
      return model.rows.map(({ id }) => id).join('');
    };
    expect([1, 2, 3].map(() => order('m:loss'))).toEqual(['bac', 'abc', 'abc']);
    await model.markBest('max:loss');
    expect([1, 2].map(() => order('m:loss'))).toEqual(['abc', 'bac']);
    expect([1, 2].map(() => order('p:lr'))).toEqual(['abc', 'cba']);
    model.dispose();
  });

  it('marks no run that was the best before the last one ended', async () => {
    const model = modelOf([], 2);
    await loaded(model);
    expect(model.best).toBeNull();
    model.dispose();
  });
});
