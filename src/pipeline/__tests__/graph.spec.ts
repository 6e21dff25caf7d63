import { align } from '../positions';
import { copy, paste, readClip } from '../clipboard';
import {
  addParameterFor,
  renameParameter,
  connectFile,
  group,
  remove,
  setGroup,
  ungroup
} from '../edits';
import { edgesOf, fileValue, foldedInto } from '../graph';
import { pathBetween, reachable } from '../order';
import { PipelineDoc } from '../model';
import type { IDocument } from '../schema';
import { dumps } from '../serialize';
import { ViewMaker } from '../views';

const DIAMOND: IDocument = {
  convect: 1,
  nodes: {
    a: { kind: 'notebook', path: 'a.ipynb' },
    b: {
      kind: 'notebook',
      path: 'b.ipynb',
      parameters: {
        text: 'at ${{ nodes.a.outputs.place }} and ${{ nodes.a.outputs.time }}'
      }
    },
    c: { kind: 'notebook', path: 'c.ipynb', after: ['a'] },
    d: {
      kind: 'command',
      command: ['echo', '${{ nodes.b.outputs.x }}'],
      after: ['c', 'gone']
    }
  },
  layout: { a: [0, 0], b: [200, 0], c: [200, 100], d: [400, 50] }
};

function open(document: IDocument = DIAMOND): PipelineDoc {
  const doc = PipelineDoc.create();
  doc.setSource(dumps(document));
  return doc;
}

describe('edgesOf', () => {
  it('finds order and values, and nothing that leads nowhere', () => {
    expect(edgesOf(DIAMOND).map(edge => edge.id)).toEqual([
      'a.place>b.parameters.text',
      'a.time>b.parameters.text',
      'a>c',
      'b.x>d.command',
      'c>d'
    ]);
  });
});

describe('pathBetween', () => {
  const edges = edgesOf(DIAMOND);
  it('names the nodes of the cycle that an edge would make', () => {
    expect(pathBetween(edges, 'a', 'd')).toEqual(['a', 'b', 'd']);
    expect(pathBetween(edges, 'a', 'a')).toEqual(['a']);
  });
  it('allows what makes none', () => {
    expect(pathBetween(edges, 'd', 'a')).toBeNull();
    expect(pathBetween(edges, 'c', 'b')).toBeNull();
  });
});

describe('remove', () => {
  it('takes a value out of a text and leaves the rest', () => {
    const doc = open();
    const [place] = edgesOf(doc.snapshot);
    remove(doc, [], [place]);
    expect(doc.snapshot.nodes.b).toMatchObject({
      parameters: { text: 'at  and ${{ nodes.a.outputs.time }}' }
    });
  });

  it('takes several connections of one node away at once', () => {
    const doc = open({
      convect: 1,
      nodes: {
        a: { kind: 'command', command: ['a'] },
        b: { kind: 'command', command: ['b'] },
        c: { kind: 'command', command: ['c'], after: ['a', 'b'] }
      }
    });
    remove(doc, [], edgesOf(doc.snapshot));
    expect(edgesOf(doc.snapshot)).toEqual([]);
    doc.undo();
    expect(edgesOf(doc.snapshot).map(edge => edge.id)).toEqual(['a>c', 'b>c']);
  });
});

describe('files', () => {
  const FILES: IDocument = {
    convect: 1,
    nodes: {
      make: {
        kind: 'notebook',
        path: 'steps/make.ipynb',
        outputs: ['out/rows.csv', 'out/*.png']
      },
      read: { kind: 'script', path: 'steps/read.py' },
      load: { kind: 'component', component: 'd' }
    }
  };

  it('hand a declared file over: as a path, or as a file to a component', () => {
    const doc = open(FILES);
    connectFile(doc, 'make', 'out/rows.csv', 'read', 'rows');
    connectFile(doc, 'make', 'out/rows.csv', 'load', 'table');
    expect(doc.snapshot.nodes.read).toMatchObject({
      parameters: { rows: 'out/rows.csv' },
      after: ['make']
    });
    expect(doc.snapshot.nodes.load).toMatchObject({
      inputs: { table: { file: 'steps/out/rows.csv' } },
      after: ['make']
    });
    expect(edgesOf(doc.snapshot).map(({ kind, id }) => [kind, id])).toEqual([
      ['file', 'make:out/rows.csv>load.inputs.table'],
      ['file', 'make:out/rows.csv>read.parameters.rows']
    ]);
    doc.undo();
    expect(doc.snapshot.nodes.load).toEqual(FILES.nodes.load);
  });

  it('go with their order, unless another file needs it', () => {
    const doc = open(FILES);
    connectFile(doc, 'make', 'out/rows.csv', 'read', 'rows');
    connectFile(doc, 'make', 'out/rows.csv', 'read', 'again');
    const [first] = edgesOf(doc.snapshot);
    remove(doc, [], [first]);
    expect(doc.snapshot.nodes.read).toMatchObject({ after: ['make'] });
    remove(doc, [], edgesOf(doc.snapshot));
    expect(doc.snapshot.nodes.read).toEqual(FILES.nodes.read);
  });

  it('are found from where each node works', () => {
    const valueFor = (settings: object) =>
      fileValue(
        {
          ...FILES,
          nodes: {
            ...FILES.nodes,
            read: { kind: 'script', path: 'steps/read.py', ...settings }
          }
        } as IDocument,
        'make',
        'out/rows.csv',
        'read'
      );
    expect(valueFor({ working_folder: 'other/place' })).toBe(
      '../../steps/out/rows.csv'
    );
    expect(valueFor({ working_folder: 'isolated' })).toBe('out/rows.csv');
    expect(fileValue(FILES, 'make', 'out/*.png', 'read')).toBeUndefined();
  });

  it('are ports of their node, patterns too', () => {
    const views = new ViewMaker().make(FILES, [], {
      found: new Map(),
      problems: [],
      steps: null
    });
    expect(views.get('make')!.outputs).toEqual([
      { name: 'out/rows.csv', isPath: true, isWired: false },
      { name: 'out/*.png', isPath: true, isWired: false }
    ]);
  });
});

describe('reachable', () => {
  it('looks at each edge once, however long the chain', () => {
    let looks = 0;
    const edges = Array.from({ length: 2000 }, (_, index) => ({
      id: String(index),
      kind: 'order' as const,
      get source() {
        looks++;
        return `n${index}`;
      },
      target: `n${index + 1}`
    }));
    expect(reachable(edges, ['n0'], 'down').size).toBe(2001);
    expect(reachable(edges, ['n1000'], 'down').size).toBe(1001);
    expect(looks).toBeLessThan(5 * edges.length);
  });
});

describe('addParameterFor', () => {
  it('makes a parameter of the pipeline and takes it, in one step', () => {
    const doc = open();
    addParameterFor(doc, 'c', { name: 'rows', type: 'integer', default: 3 });
    expect(doc.snapshot.parameters).toEqual({
      rows: { type: 'integer', default: 3 }
    });
    expect(doc.snapshot.nodes.c).toMatchObject({
      parameters: { rows: '${{ parameters.rows }}' }
    });
    doc.undo();
    expect(doc.snapshot).toEqual(DIAMOND);
  });
});

describe('renameParameter', () => {
  it('renames it wherever it is used, in one step, and takes no other name', () => {
    const doc = open();
    addParameterFor(doc, 'c', { name: 'rows', type: 'integer', default: 3 });
    doc.edit(draft => {
      draft.set(['nodes', 'b', 'when'], '${{ parameters.rows > 2 }}');
      draft.set(['meta', 'outputs'], { n: '${{ parameters.rows }}' });
      draft.set(['meta', 'parameters', 'other'], { type: 'string' });
    });
    const before = doc.snapshot;
    expect(renameParameter(doc, 'rows', 'other')).toBe(false);
    expect(doc.snapshot).toBe(before);
    expect(renameParameter(doc, 'rows', 'lines')).toBe(true);
    const { nodes, outputs, parameters } = doc.snapshot;
    expect(parameters).toEqual({
      lines: { type: 'integer', default: 3 },
      other: { type: 'string' }
    });
    expect(nodes.b.when).toBe('${{ parameters.lines > 2 }}');
    expect(nodes.c).toMatchObject({
      parameters: { rows: '${{ parameters.lines }}' }
    });
    expect(outputs).toEqual({ n: '${{ parameters.lines }}' });
    doc.undo();
    expect(doc.snapshot).toEqual(before);
  });
});

describe('groups', () => {
  it('nest, fold and dissolve', () => {
    const doc = open();
    const inner = group(doc, ['b', 'c'], 'middle', { x: 0, y: 0 });
    const outer = group(doc, [inner, 'd', 'b'], 'end', { x: 0, y: 0 });
    expect(doc.snapshot.nodes[outer]).toMatchObject({ members: [inner, 'd'] });
    doc.edit(draft => draft.put('layout', outer, { at: [0, 0], folded: true }));
    expect(Object.fromEntries(foldedInto(doc.snapshot))).toEqual({
      b: outer,
      c: outer,
      d: outer,
      [inner]: outer
    });
    ungroup(doc, [inner]);
    expect(doc.snapshot.nodes[outer]).toMatchObject({
      members: ['d', 'b', 'c']
    });
    setGroup(doc, ['d'], null);
    expect(doc.snapshot.nodes[outer]).toMatchObject({ members: ['b', 'c'] });
  });
});

describe('clipboard', () => {
  it('keeps the edges inside, and those to nodes that are there', () => {
    const doc = open();
    const clip = readClip(JSON.stringify(copy(doc.snapshot, ['b', 'd'], '')))!;
    const ids = paste(doc, clip, { offset: { x: 10, y: 10 } });
    expect(ids).toEqual(['b-2', 'd-2']);
    expect(doc.snapshot.nodes['d-2']).toEqual({
      kind: 'command',
      command: ['echo', '${{ nodes.b-2.outputs.x }}'],
      after: ['c']
    });
    expect(doc.snapshot.layout).toMatchObject({ 'b-2': [210, 10] });
  });

  it('leaves behind what another file does not have', () => {
    const clip = copy(DIAMOND, ['b', 'd'], '');
    const other = open({ convect: 1, nodes: {} });
    paste(other, clip, { at: { x: 0, y: 0 } }, path => `../x/${path}`);
    expect(other.snapshot.nodes).toEqual({
      b: {
        kind: 'notebook',
        path: '../x/b.ipynb',
        parameters: { text: 'at  and ' }
      },
      d: {
        kind: 'command',
        command: ['echo', '${{ nodes.b.outputs.x }}']
      }
    });
    expect(other.snapshot.layout).toEqual({ b: [0, 0], d: [200, 50] });
  });

  it('passes over a text that is something else', () => {
    expect(readClip('hello')).toBeNull();
    expect(readClip('{"nodes": {}}')).toBeNull();
  });
});

describe('align', () => {
  const boxes = new Map([
    ['a', { x: 0, y: 0, width: 100, height: 40 }],
    ['b', { x: 30, y: 100, width: 60, height: 40 }],
    ['c', { x: 10, y: 300, width: 80, height: 40 }]
  ]);
  it('brings boxes into line', () => {
    expect(align(boxes, 'right').get('b')).toEqual({ x: 40, y: 100 });
    expect(align(boxes, 'middle').get('a')).toEqual({ x: 0, y: 150 });
  });
  it('spreads them evenly', () => {
    expect(align(boxes, 'down').get('b')).toEqual({ x: 30, y: 150 });
  });
});
