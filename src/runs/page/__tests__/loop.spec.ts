import type {
  IConvectApi,
  IGroup,
  IItemsQuery,
  ILoopItem,
  ILoopItems,
  IRunView,
  IStep,
  State
} from '../../../api';
import { stepOf } from '../../../api/types';
import { LoopModel, tellingStep } from '../loop';
import { mostTelling, whatToShow } from '../model';
import { loopOf, outlineOf, placeOf, plannedOf } from '../outline';

function groupOf(id: string, more: Partial<IGroup> = {}): IGroup {
  return {
    id,
    node: id,
    item: [],
    state: 'running',
    reason: null,
    started: 1,
    ended: null,
    by_rule: false,
    stopping: false,
    items: null,
    counts: {},
    ...more
  };
}

function step(id: string, state: State, more: Partial<IStep> = {}): IStep {
  return stepOf({ id, state, node: id, item: [], ...more });
}

/** A branch in which a group loops, with a loop of its own in each item. */
const VIEW = {
  plan: {
    name: 'p',
    steps: [
      { id: 'train', kind: 'notebook', name: 'Train' },
      { id: 'score', kind: 'notebook', name: 'Score', group: 'regions' },
      {
        id: 'deep',
        kind: 'notebook',
        name: 'Deep',
        group: 'regions',
        for_each: { name: 'k', items: [1, 2] }
      },
      { id: 'clean', kind: 'command', name: 'Clean', run_if: 'always' }
    ],
    groups: [
      {
        id: 'branch',
        name: 'Branch',
        when: '${{ nodes.train.outputs.x > 1 }}'
      },
      {
        id: 'regions',
        name: 'Regions',
        group: 'branch',
        for_each: { name: 'region', items: ['eu', 'us'] }
      }
    ]
  },
  steps: {
    train: step('train', 'succeeded'),
    'regions.0.score': step('regions.0.score', 'succeeded', {
      node: 'score',
      item: [0]
    }),
    'regions.1.deep.1': step('regions.1.deep.1', 'failed', {
      node: 'deep',
      item: [1, 1]
    }),
    clean: step('clean', 'waiting')
  },
  groups: {
    branch: groupOf('branch'),
    regions: groupOf('regions', { items: 2, counts: { running: 2 } }),
    'regions.1': groupOf('regions.1', { node: 'regions', item: [1] }),
    'regions.1.deep': groupOf('regions.1.deep', {
      node: 'deep',
      item: [1],
      items: 2,
      counts: { failed: 1, succeeded: 1 }
    })
  }
} as unknown as IRunView;

function itemOf(index: number, state: State): ILoopItem {
  const id = `regions.${index}`;
  return {
    index,
    value: `v${index}`,
    id,
    state,
    reason: null,
    started: 1,
    ended: 2,
    steps: {
      [`${id}.score`]: step(`${id}.score`, 'succeeded', { node: 'score' }),
      [`${id}.deep.0`]: step(`${id}.deep.0`, state, { node: 'deep' })
    }
  };
}

describe('the outline of a run', () => {
  it('has one line for a loop, however many items it has', () => {
    expect(outlineOf(VIEW).map(({ name, depth }) => [name, depth])).toEqual([
      ['Train', 0],
      ['Branch', 0],
      ['Regions', 1],
      ['Clean', 0]
    ]);
  });

  it('has the steps of the item that is looked at, and its own loops as lines', () => {
    const open = { loop: 'regions', item: itemOf(1, 'failed') };
    expect(outlineOf(VIEW, open).map(({ id, depth }) => [id, depth])).toEqual([
      ['train', 0],
      ['branch', 0],
      ['regions', 1],
      ['regions.1', 2],
      ['regions.1.score', 3],
      ['regions.1.deep', 3],
      ['clean', 0]
    ]);
  });

  it('knows the step of the plan, also of an item that the view does not have', () => {
    expect(plannedOf(VIEW, 'regions.0.score')?.id).toBe('score');
    expect(plannedOf(VIEW, 'regions.77.score')?.id).toBe('score');
    expect(plannedOf(VIEW, 'regions.77.deep.3')?.id).toBe('deep');
    expect(plannedOf(VIEW, 'train')?.id).toBe('train');
    expect(plannedOf(VIEW, 'nothing')).toBeUndefined();
  });

  it('knows the loop of a step by its path', () => {
    const { steps, plan } = VIEW;
    expect(loopOf(plan, steps['regions.0.score'])).toEqual({
      loop: 'regions',
      index: 0
    });
    expect(loopOf(plan, steps['regions.1.deep.1'])).toEqual({
      loop: 'regions.1.deep',
      index: 1
    });
    expect(loopOf(plan, steps.train)).toBeNull();
  });
});

describe('what is shown first', () => {
  it('is what failed, also in a loop in a loop', () => {
    expect(mostTelling(VIEW)).toBe('regions.1.deep.1');
    expect(tellingStep(itemOf(0, 'failed'))?.id).toBe('regions.0.deep.0');
  });

  it('is for a node in a loop the step that failed, else the loop', () => {
    expect(whatToShow(VIEW, 'deep')).toBe('regions.1.deep.1');
    expect(whatToShow(VIEW, 'score')).toBe('regions');
    expect(whatToShow(VIEW, 'regions')).toBe('regions');
    expect(whatToShow(VIEW, 'train')).toBe('train');
  });
});

describe('the place of a step that the run does not show', () => {
  it.each([
    ['regions.4711.score', { loop: 'regions', index: 4711 }],
    ['regions.4711.deep.1', { loop: 'regions.4711.deep', index: 1 }],
    ['train', null],
    ['gone.7', null]
  ])('is in its name: %s', (id, place) => {
    expect(placeOf(VIEW, id)).toEqual(place);
  });
});

describe('LoopModel', () => {
  const total = 10_000;
  const isBad = (index: number) => index % 3000 === 7;
  const bad = [7, 3007, 6007, 9007];

  function pageOf(query: IItemsQuery): ILoopItems {
    const { state, offset = 0, limit = 100, worst_first: worstFirst } = query;
    const all = Array.from({ length: total }, (_, index) =>
      itemOf(index, isBad(index) ? 'failed' : 'succeeded')
    ).filter(item => !state || state.includes(item.state));
    if (worstFirst) {
      const rank = (item: ILoopItem) => Number(item.state !== 'failed');
      all.sort((one, two) => rank(one) - rank(two));
    }
    return {
      ...groupOf('regions'),
      matched: all.length,
      offset,
      page: all.slice(offset, offset + limit)
    };
  }

  const counts = { failed: 4, succeeded: total - 4 };
  const loop = () => groupOf('regions', { items: total, counts });

  function open(): { model: LoopModel; asked: object[] } {
    const asked: object[] = [];
    const api = {
      items: async (_: object, query: IItemsQuery) => {
        asked.push(query);
        return pageOf(query);
      }
    } as unknown as IConvectApi;
    return { model: new LoopModel(api, 'r', loop()), asked };
  }

  async function settled(model: LoopModel, row: number): Promise<void> {
    while (!model.at(row)) {
      await new Promise<void>(resolve => {
        const done = () => {
          model.changed.disconnect(done);
          resolve();
        };
        model.changed.connect(done);
      });
    }
  }

  it('shows the failed items first, and asks only for what is in sight', async () => {
    const { model, asked } = open();
    expect(model.count).toBe(total);
    model.show(0, 20);
    await settled(model, 20);
    expect([0, 1, 2, 3].map(row => model.at(row)?.index)).toEqual(bad);
    expect(model.at(4)?.index).toBe(0);
    expect(asked.length).toBe(1);
    model.show(9_010, 9_030);
    await settled(model, 9_030);
    expect(asked.length).toBe(2);
    expect(model.at(9_030)?.index).toBe(9_030);
    model.dispose();
  });

  it('asks for nothing that came with the run', async () => {
    const { model, asked } = open();
    model.show(90, 130);
    await settled(model, 130);
    expect(asked.length).toBe(1);
    const { loop: id, ...query } = model.query;
    expect([id, query.offset, query.limit]).toEqual(['regions', 0, 200]);
    model.update(loop(), pageOf(query));
    model.show(95, 140);
    await new Promise(resolve => setTimeout(resolve, 0));
    expect(asked.length).toBe(1);
    model.update(loop());
    model.show(95, 141);
    await settled(model, 141);
    model.dispose();
  });

  it('takes no items that it did not ask for', async () => {
    const { model, asked } = open();
    model.update(loop(), pageOf({ offset: 200, limit: 1 }));
    expect(model.at(200)).toBeUndefined();
    model.show(200, 210);
    await settled(model, 210);
    expect(asked.length).toBe(1);
    model.dispose();
  });

  it('shows only those in one state when that is chosen', async () => {
    const { model } = open();
    model.setFilter('failed');
    expect(model.count).toBe(4);
    await settled(model, 3);
    expect(model.at(3)?.index).toBe(9007);
    model.setFilter(null);
    expect(model.count).toBe(total);
    model.dispose();
  });
});
