import { nullTranslator } from '@jupyterlab/translation';

import { boxesOf } from '../boxes';
import type { IStep, State } from '../../api';
import { stepOf } from '../../api';
import { toFlow } from '../canvas/flow';
import { edgesOf } from '../graph';
import type { IDocument, Json } from '../schema';
import { stepIds, unfold } from '../unfold';
import { ViewMaker } from '../views';

// Browsers have it, jsdom does not.
globalThis.structuredClone ??= value => JSON.parse(JSON.stringify(value));

const COUNT: Json = {
  name: 'Count',
  inputs: [
    { name: 'text', passed: 'file' },
    { name: 'skip', default: '0' }
  ],
  outputs: [{ name: 'lines', type: 'Integer', passed: 'value' }],
  container: { image: 'alpine' }
};

const DOCUMENT: IDocument = {
  convect: 1,
  nodes: {
    twice: { kind: 'component', component: 'sha256:1', inputs: {} },
    after: { kind: 'command', command: ['true'], after: ['twice'] }
  },
  layout: { twice: [100, 50], after: [900, 0] },
  components: {
    'sha256:1': {
      name: 'Twice',
      inputs: [{ name: 'data' }],
      outputs: [{ name: 'sum' }],
      graph: {
        tasks: {
          'First one': {
            component: 'count',
            arguments: { text: { graphInput: 'data' } }
          },
          Second: {
            component: 'count',
            arguments: {
              text: { graphInput: 'data' },
              skip: { taskOutput: { task: 'First one', output: 'lines' } }
            },
            after: ['First one']
          }
        },
        outputs: { sum: { taskOutput: { task: 'Second', output: 'lines' } } },
        components: { count: COUNT }
      }
    }
  }
};

function step(id: string, state: State): IStep {
  return stepOf({ id, state });
}

function draw(unfolded: string[], steps: Record<string, IStep> | null = null) {
  const edges = edgesOf(DOCUMENT);
  const views = new ViewMaker().make(DOCUMENT, edges, {
    found: new Map(),
    problems: [],
    steps,
    unfolded: new Set(unfolded),
    unfold
  });
  const flow = toFlow({
    document: DOCUMENT,
    views,
    boxes: boxesOf(DOCUMENT, views),
    edges,
    selection: new Set(),
    selectedEdges: new Set(),
    trans: nullTranslator.load('jupyterlab_convect')
  });
  return { view: views.get('twice')!, ...flow };
}

describe('a graph component', () => {
  it('is one node while it is folded', () => {
    const { view, nodes } = draw([]);
    expect(nodes.map(node => node.id)).toEqual(['twice', 'after']);
    expect([view.isFolded, view.count]).toEqual([true, 2]);
  });

  it('shows its tasks with their ends and wires when it is unfolded', () => {
    const { view, nodes, edges } = draw(['twice']);
    expect(nodes.map(node => [node.id, node.parentId])).toEqual([
      ['twice', undefined],
      ['twice.first-one', 'twice'],
      ['twice.second', 'twice'],
      ['after', undefined]
    ]);
    const ends = edges.map(edge => [edge.sourceHandle, edge.targetHandle]);
    expect(ends).toEqual([
      ['out', 'in'],
      ['out:lines', 'in:skip'],
      ['within-out:data', 'in:text'],
      ['within-out:data', 'in:text'],
      ['out:lines', 'within-in:sum']
    ]);
    const [outer, ...tasks] = nodes;
    for (const task of tasks.filter(node => node.parentId)) {
      expect(task.position.x).toBeGreaterThan(0);
      expect(task.position.x + task.width!).toBeLessThan(outer.width!);
      expect(task.position.y + task.height!).toBeLessThan(outer.height!);
      expect([task.draggable, task.connectable]).toEqual([false, false]);
    }
    const second = view.inner!.views.get('twice.second')!;
    expect(second.inputs.map(port => port.isWired)).toEqual([true, true]);
    expect(second.outputs.map(port => port.type)).toEqual(['Integer']);
  });

  it('shows the state of its steps, together and each', () => {
    const steps = {
      'twice.first-one': step('twice.first-one', 'succeeded'),
      'twice.second': step('twice.second', 'running')
    };
    expect(draw([], steps).view.step?.state).toBe('running');
    const { inner } = draw(['twice'], steps).view;
    expect([...inner!.views.values()].map(({ step }) => step?.state)).toEqual([
      'succeeded',
      'running'
    ]);
  });
});

describe('stepIds', () => {
  it('are those that the server gives to steps', () => {
    const names = ['Once more!', 'once-more', 'outputs', '数 据', '--', 'A_b'];
    expect([...stepIds('n', names).values()]).toEqual([
      'n.once-more',
      'n.once-more-2',
      'n.task',
      'n.数-据',
      'n.task-2',
      'n.a_b'
    ]);
  });
});
