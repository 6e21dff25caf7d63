import { nullTranslator } from '@jupyterlab/translation';
import { applyNodeChanges } from '@xyflow/react';

import { stepOf } from '../../api';
import { boxesOf, farFontSize } from '../boxes';
import { spreadOut } from '../positions';
import { refusal } from '../canvas/connections';
import type { FlowNode } from '../canvas/flow';
import { toFlow } from '../canvas/flow';
import { othersIn } from '../canvas/Others';
import { groupAfterDrop, placesOf, reconcile } from '../canvas/moves';
import { shiftInto } from '../canvas/useHandle';
import { edgesOf } from '../graph';
import { crossings, layOut } from '../layout';
import type { IPalette } from '../picture';
import { toSvg } from '../picture';
import { documentOf } from '../planview';
import type { IDocument } from '../schema';
import { ViewMaker } from '../views';

// Browsers have it, jsdom does not.
globalThis.structuredClone ??= value => JSON.parse(JSON.stringify(value));

const trans = nullTranslator.load('jupyterlab_convect');

const GROUPED: IDocument = {
  convect: 1,
  nodes: {
    load: { kind: 'notebook', path: 'load.ipynb' },
    clean: { kind: 'script', path: 'clean.py', after: ['load'] },
    fit: {
      kind: 'notebook',
      path: 'fit.ipynb',
      parameters: { rows: '${{ nodes.clean.outputs.rows }}' }
    },
    part: { kind: 'group', name: 'Part', members: ['clean', 'fit'] }
  },
  comments: { note: { text: 'hello <world>' } },
  layout: {
    load: [0, 0],
    clean: [300, 0],
    fit: [600, 0],
    note: [0, 300, 100, 50]
  }
};

const FOLDED: IDocument = {
  ...GROUPED,
  layout: { ...GROUPED.layout, part: { at: [300, 0], folded: true } }
};

function draw(document: IDocument, maker = new ViewMaker()) {
  const edges = edgesOf(document);
  const views = maker.make(document, edges, {
    found: new Map(),
    problems: [],
    steps: null
  });
  const boxes = boxesOf(document, views);
  const flow = toFlow({
    document,
    views,
    boxes,
    edges,
    selection: new Set(),
    selectedEdges: new Set(),
    trans
  });
  return { views, boxes, nodes: flow.nodes, lines: flow.edges };
}

describe('toFlow', () => {
  it('draws nodes, frames, notes and both kinds of edges', () => {
    const { nodes, lines } = draw(GROUPED);
    expect(nodes.map(node => [node.id, node.type])).toEqual([
      ['load', 'step'],
      ['note', 'note'],
      ['part', 'frame'],
      ['clean', 'step'],
      ['fit', 'step']
    ]);
    expect(lines.map(line => [line.sourceHandle, line.targetHandle])).toEqual([
      ['out', 'in'],
      ['out:rows', 'in:rows']
    ]);
  });

  it('lets lines end at the rim of an end, where an arrow is seen', () => {
    const clean = draw(GROUPED).nodes.find(node => node.id === 'clean')!;
    const end = (id: string) => clean.handles!.find(item => item.id === id)!;
    expect(end('in')).toMatchObject({ x: -5.5, width: 11 });
    expect(end('out')).toMatchObject({ x: clean.width! - 5.5, y: 24 - 5.5 });
    expect(end('out:rows')).toMatchObject({ width: 9, height: 9 });
  });

  it('shows a folded group as one box, with its outer edges', () => {
    const { nodes, lines } = draw(FOLDED);
    expect(nodes.map(node => node.id)).toEqual(['load', 'note', 'part']);
    expect(lines.map(line => [line.source, line.target])).toEqual([
      ['load', 'part']
    ]);
  });

  it('draws what begins or ends at a group to its frame', () => {
    const { lines } = draw({
      ...GROUPED,
      nodes: {
        ...GROUPED.nodes,
        end: { kind: 'command', command: ['end'], after: ['part'] }
      }
    });
    expect(lines.map(line => [line.source, line.target])).toContainEqual([
      'part',
      'end'
    ]);
  });

  it('puts what nobody has placed below, not into a group', () => {
    const { boxes } = draw({
      ...GROUPED,
      nodes: {
        ...GROUPED.nodes,
        lost: { kind: 'command', command: ['lost'] },
        late: { kind: 'command', command: ['late'] },
        rest: { kind: 'group', members: ['late'] }
      }
    });
    const frames = [boxes.get('part')!, boxes.get('rest')!];
    const { x, y, height } = boxes.get('lost')!;
    for (const frame of frames) {
      expect(y >= frame.y + frame.height || y + height <= frame.y).toBe(true);
    }
    expect(x).toBe(0);
  });

  it('says in words what a node is and what it follows', () => {
    const { nodes } = draw(GROUPED);
    const labels = Object.fromEntries(
      nodes.map(node => [node.id, node.ariaLabel])
    );
    expect(labels.clean).toBe('Script clean, runs after load');
    expect(labels.part).toMatch(/^Group Part/);
  });
});

describe('farFontSize', () => {
  const box = { width: 200, height: 48 };
  it('gives short names large letters, and lets no name out of its box', () => {
    expect(farFontSize('fit', box)).toBeGreaterThan(30);
    for (const name of [
      'fit',
      'a-rather-long-name-of-a-node',
      '特征工程与训练'
    ]) {
      const size = farFontSize(name, box);
      const wide = /[\u3000-\uffff]/.test(name) ? 1 : 0.6;
      const lines = Math.ceil((name.length * wide * size) / (box.width - 24));
      expect(lines * size * 1.1).toBeLessThanOrEqual(box.height);
    }
  });
});

describe('shiftInto', () => {
  const view = { x: 0, y: 0, width: 500, height: 300 };
  const shift = (x: number, y: number, width = 200) =>
    shiftInto({ x, y, width, height: 50 }, view);
  it('goes no further than it has to', () => {
    expect(shift(100, 100)).toEqual({ x: 0, y: 0 });
    expect(shift(400, 100)).toEqual({ x: 124, y: 0 });
    expect(shift(-50, 290)).toEqual({ x: -74, y: 64 });
  });
  it('shows the beginning of what is larger', () => {
    expect(shift(100, 100, 900)).toEqual({ x: 76, y: 0 });
  });
});

describe('ViewMaker', () => {
  it('gives the same view while nothing in it changes', () => {
    const maker = new ViewMaker();
    const first = draw(GROUPED, maker).views;
    const changed = {
      ...GROUPED,
      nodes: {
        ...GROUPED.nodes,
        fit: { kind: 'notebook', path: 'other.ipynb' } as const
      }
    };
    const second = draw(changed, maker).views;
    expect(second.get('load')).toBe(first.get('load'));
    expect(second.get('fit')).not.toBe(first.get('fit'));
  });
});

describe('moves', () => {
  const moveTo = (id: string, x: number, y: number) => [
    { id, type: 'position' as const, position: { x, y }, dragging: false }
  ];
  const at = (nodes: FlowNode[], id: string) =>
    nodes.find(node => node.id === id)!.position;

  it('places the members of a group from its corner', () => {
    const { nodes, boxes } = draw(GROUPED);
    const part = nodes.findIndex(node => node.id === 'part');
    const fit = nodes.findIndex(node => node.id === 'fit');
    expect(part).toBeLessThan(fit);
    expect(nodes[fit]).toMatchObject({
      parentId: 'part',
      position: { x: 600 - boxes.get('part')!.x, y: 40 }
    });
  });

  it('writes new places for all that is in a group that was moved', () => {
    const { nodes } = draw(GROUPED);
    const { x, y } = at(nodes, 'part');
    const after = applyNodeChanges(moveTo('part', x + 10, y + 20), nodes);
    expect(
      Object.fromEntries(placesOf(GROUPED, after, new Set(['part'])))
    ).toEqual({ clean: { x: 310, y: 20 }, fit: { x: 610, y: 20 } });
  });

  it('writes the place of a member, also in a group in a group', () => {
    const nested: IDocument = {
      ...GROUPED,
      nodes: {
        ...GROUPED.nodes,
        all: { kind: 'group', members: ['part', 'load'] }
      }
    };
    const { nodes } = draw(nested);
    expect(nodes.map(node => [node.id, node.parentId])).toEqual(
      expect.arrayContaining([
        ['part', 'all'],
        ['clean', 'part'],
        ['load', 'all']
      ])
    );
    const { x, y } = at(nodes, 'clean');
    const after = applyNodeChanges(moveTo('clean', x + 5, y - 5), nodes);
    expect(
      Object.fromEntries(placesOf(nested, after, new Set(['clean'])))
    ).toEqual({ clean: { x: 305, y: -5 } });
  });

  it('moves what a folded group hides with it', () => {
    const { nodes } = draw(FOLDED);
    const after = applyNodeChanges(moveTo('part', 400, 100), nodes);
    const places = placesOf(FOLDED, after, new Set(['part']));
    expect(Object.fromEntries(places)).toEqual({
      part: { x: 400, y: 100 },
      clean: { x: 400, y: 100 },
      fit: { x: 700, y: 100 }
    });
  });

  it('finds the group that a node was dropped on', () => {
    const { nodes } = draw(GROUPED);
    const dropped = applyNodeChanges(moveTo('load', 500, 0), nodes);
    expect(groupAfterDrop(GROUPED, dropped, ['load'])).toBe('part');
    expect(groupAfterDrop(GROUPED, dropped, ['fit'])).toBeUndefined();
  });

  it('takes a node out of its group when it was dropped beside the frame', () => {
    const { nodes } = draw(GROUPED);
    const drop = (x: number, y: number) =>
      groupAfterDrop(GROUPED, applyNodeChanges(moveTo('clean', x, y), nodes), [
        'clean'
      ]);
    expect(drop(100, 400)).toBeNull();
    // Partly on it, it makes the frame larger.
    expect(drop(100, 100)).toBeUndefined();
  });

  it('leaves an inner group for the one around it', () => {
    const nested: IDocument = {
      ...GROUPED,
      nodes: {
        ...GROUPED.nodes,
        all: { kind: 'group', members: ['part', 'load'] }
      }
    };
    const { nodes } = draw(nested);
    const { x, y } = at(nodes, 'clean');
    const beside = applyNodeChanges(moveTo('clean', x - 250, y), nodes);
    expect(groupAfterDrop(nested, beside, ['clean'])).toBe('all');
    const outside = applyNodeChanges(moveTo('clean', x, 900), nodes);
    expect(groupAfterDrop(nested, outside, ['clean'])).toBeNull();
  });

  it('keeps a node where it is being dragged when the document changes', () => {
    const maker = new ViewMaker();
    const { nodes } = draw(GROUPED, maker);
    const dragged = nodes.map(node =>
      node.id === 'load'
        ? { ...node, dragging: true, position: { x: 5, y: 5 } }
        : node
    ) as FlowNode[];
    const next = reconcile(dragged, draw(GROUPED, maker).nodes);
    expect(at(next, 'load')).toEqual({ x: 5, y: 5 });
    expect(next.find(node => node.id === 'fit')).toBe(
      dragged.find(node => node.id === 'fit')
    );
  });
});

describe('layOut', () => {
  it('puts what runs after a group beside it, also when nothing is in it', () => {
    const document: IDocument = {
      ...GROUPED,
      nodes: {
        ...GROUPED.nodes,
        part: { kind: 'group', members: ['clean', 'fit'], after: ['load'] },
        empty: { kind: 'group', members: [], after: ['part'] },
        last: { kind: 'command', command: ['ls'], after: ['part', 'empty'] }
      }
    };
    const { boxes } = draw(document);
    const places = layOut(document, boxes, edgesOf(document));
    expect(places.get('last')!.x).toBeGreaterThan(places.get('fit')!.x);
    expect(places.get('clean')!.x).toBeGreaterThan(places.get('load')!.x);
  });

  it('crosses no lines that need not cross', () => {
    const after: Record<string, string[]> = {
      a: [],
      b: ['a'],
      c: ['a'],
      d: ['a', 'b'],
      e: ['c'],
      f: ['b', 'c']
    };
    const document: IDocument = {
      convect: 1,
      nodes: Object.fromEntries(
        Object.entries(after).map(([id, before]) => [
          id,
          { kind: 'command', command: ['ls'], after: before }
        ])
      )
    };
    const { boxes } = draw(document);
    const edges = edgesOf(document);
    const places = layOut(document, boxes, edges);
    const laidOut = new Map(
      [...boxes].map(([id, box]) => [id, { ...box, ...places.get(id) }])
    );
    const lines = edges.map(({ source, target }): [string, string] => [
      source,
      target
    ]);
    expect(crossings(laidOut, lines)).toBe(0);
  });
});

describe('refusal', () => {
  const edges = edgesOf(GROUPED);
  const say = (
    source: string,
    target: string,
    sourceHandle = 'out',
    targetHandle = 'in'
  ) =>
    refusal(
      GROUPED,
      edges,
      { source, target, sourceHandle, targetHandle },
      trans
    );
  it('names the cycle', () => {
    expect(say('fit', 'load')).toBe(
      'This would be a cycle: load → clean → fit → load.'
    );
  });
  it('says why other ends do not meet', () => {
    expect(say('load', 'load')).toMatch(/itself/);
    expect(say('clean', 'part')).toMatch(/what is in it/);
    expect(say('load', 'fit', 'out', 'in:rows')).toMatch(/one of its outputs/);
  });
  it('lets a group be connected as a whole', () => {
    expect(say('load', 'part')).toBeNull();
    expect(say('part', 'load')).toBe(
      'This would be a cycle: load → clean → Part → load.'
    );
  });
  it('hands no pattern of files over as one file', () => {
    expect(say('load', 'fit', 'file:out/*.csv', 'in:rows')).toMatch(
      /several files/
    );
    expect(say('load', 'fit', 'file:out/*.csv', 'in')).toBeNull();
    expect(say('load', 'fit', 'file:out/a.csv', 'in:rows')).toBeNull();
  });
  it('lets the rest pass', () => {
    expect(say('load', 'fit')).toBeNull();
    expect(say('load', 'fit', 'out:x', 'in:rows')).toBeNull();
  });
});

describe('layOut', () => {
  it('puts what runs later further right, and keeps notes', () => {
    const { boxes } = draw(GROUPED);
    const places = layOut(GROUPED, boxes, edgesOf(GROUPED));
    expect(places.get('load')!.x).toBeLessThan(places.get('clean')!.x);
    expect(places.get('clean')!.x).toBeLessThan(places.get('fit')!.x);
    expect(places.has('note')).toBe(false);
    expect(places.has('part')).toBe(false);
  });
});

describe('layOut with an open group', () => {
  it('lays nothing over its frame', () => {
    const step = { kind: 'command' as const, command: ['x'] };
    const document: IDocument = {
      convect: 1,
      nodes: {
        first: step,
        one: { ...step, after: ['first'] },
        two: { ...step, after: ['first'] },
        loop: {
          kind: 'group',
          members: ['inside'],
          after: ['first'],
          for_each: { name: 'i', in: [1] },
          run_if: 'always'
        },
        inside: step,
        three: { ...step, after: ['first'] },
        four: { ...step, after: ['first'] }
      }
    };
    const { boxes } = draw(document);
    const places = layOut(document, boxes, edgesOf(document));
    const layout = Object.fromEntries(
      [...places].map(([id, { x, y }]) => [id, [x, y]])
    );
    const after = draw({ ...document, layout }).boxes;
    const frame = after.get('loop')!;
    const covers = ({ x, y, width, height }: typeof frame) =>
      y < frame.y + frame.height &&
      frame.y < y + height &&
      x < frame.x + frame.width &&
      frame.x < x + width;
    const others = ['first', 'one', 'two', 'three', 'four'];
    expect(others.filter(id => covers(after.get(id)!))).toEqual([]);
  });
});

describe('othersIn', () => {
  it('are those who look at the canvas, with their name and colour, and not oneself', () => {
    const pipeline = { pointer: { x: 1, y: 2 }, selection: ['load'] };
    const states = new Map<number, { [field: string]: unknown }>([
      [1, { user: { name: 'me' }, pipeline }],
      [
        2,
        { user: { name: 'ana', display_name: 'Ana', color: 'red' }, pipeline }
      ],
      [3, { user: { name: 'reader' } }],
      [4, { pipeline: { pointer: null } }]
    ]);
    expect(othersIn(states, 1)).toEqual([
      { id: 2, name: 'Ana', colour: 'red', ...pipeline },
      {
        id: 4,
        name: '',
        colour: 'var(--jp-brand-color1)',
        pointer: null,
        selection: []
      }
    ]);
  });
});

describe('spreadOut', () => {
  const box = (x: number, y: number) => ({ x, y, width: 200, height: 70 });

  it('moves apart what another tool drew smaller, and leaves what has room', () => {
    const crowded = new Map([
      ['a', box(0, 0)],
      ['b', box(210, 0)],
      ['c', box(210, 65)]
    ]);
    const places = spreadOut(crowded);
    expect(places.get('a')).toEqual({ x: 0, y: 0 });
    expect(places.get('b')!.x).toBeGreaterThanOrEqual(240);
    expect(places.get('c')!.y).toBeGreaterThanOrEqual(130);
    const roomy = new Map([
      ['a', box(0, 0)],
      ['b', box(300, 0)]
    ]);
    expect(spreadOut(roomy).size).toBe(0);
  });
});

describe('toSvg', () => {
  const palette: IPalette = {
    background: '#fff',
    card: '#fff',
    border: '#000',
    text: '#000',
    faint: '#666',
    wire: '#333',
    value: '#00f',
    note: '#ff0',
    group: '#eee',
    accents: {},
    stateOf: state => (state === 'failed' ? '#f00' : '#0f0'),
    font: 'sans-serif'
  };
  it('is a well-formed picture of everything that is shown', () => {
    const { views, boxes } = draw(GROUPED);
    const svg = toSvg(
      { document: GROUPED, views, boxes, edges: edgesOf(GROUPED), trans },
      palette
    );
    const page = new DOMParser().parseFromString(svg, 'image/svg+xml');
    expect(page.querySelector('parsererror')).toBeNull();
    const texts = [...page.querySelectorAll('text')].map(
      item => item.textContent
    );
    expect(texts).toEqual(
      expect.arrayContaining(['load', 'clean', 'fit', 'Part', 'hello <world>'])
    );
  });

  it('shows what a node is, when it runs, what became of it, and notes as text', () => {
    const document: IDocument = {
      ...GROUPED,
      nodes: {
        load: { kind: 'notebook', path: 'load.ipynb', run_if: 'always' }
      },
      comments: {
        note: { text: '# Plan\n- **first** `a`\n[more](http://x)' }
      }
    };
    const views = new ViewMaker().make(document, [], {
      found: new Map(),
      problems: [],
      steps: { load: stepOf({ id: 'load', state: 'failed' }) }
    });
    const boxes = boxesOf(document, views);
    const svg = toSvg({ document, views, boxes, edges: [], trans }, palette);
    const page = new DOMParser().parseFromString(svg, 'image/svg+xml');
    expect(page.querySelector('parsererror')).toBeNull();
    expect(page.querySelector('svg svg')).not.toBeNull();
    expect(page.querySelector('circle')?.getAttribute('fill')).toBe('#f00');
    const texts = [...page.querySelectorAll('text')].map(
      item => item.textContent
    );
    expect(texts).toEqual(
      expect.arrayContaining(['always', 'Failed', 'Plan', '• first a'])
    );
  });
});

describe('documentOf a plan', () => {
  it('has a node for each step, in their order', () => {
    const document = documentOf({
      name: 'x',
      steps: [
        { id: 'a', kind: 'notebook', name: 'A', path: 'a.ipynb' },
        { id: 'b', kind: 'component', name: 'B', component: 'd', after: ['a'] }
      ]
    });
    expect(edgesOf(document).map(edge => edge.id)).toEqual(['a>b']);
    expect(draw(document).views.get('b')).toMatchObject({
      name: 'B',
      isMissing: false
    });
  });
});
