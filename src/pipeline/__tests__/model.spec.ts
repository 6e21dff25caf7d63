import { addNodes, connect, connectValue, remove, renameNode } from '../edits';
import { PipelineDoc } from '../model';
import type { IDocument } from '../schema';
import { dumps, parse } from '../serialize';

const THREE: IDocument = {
  convect: 1,
  name: 'three',
  nodes: {
    a: { kind: 'notebook', path: 'a.ipynb' },
    b: {
      kind: 'notebook',
      path: 'b.ipynb',
      after: ['a'],
      parameters: { rows: '${{ nodes.a.outputs.rows }}' }
    },
    c: { kind: 'script', path: 'c.py', after: ['a', 'b'] }
  },
  layout: { a: [0, 0], b: [240, 0], c: [480, 0] }
};

function open(document: IDocument = THREE): PipelineDoc {
  const doc = PipelineDoc.create();
  doc.setSource(dumps(document));
  return doc;
}

describe('PipelineDoc', () => {
  it('gives back the text that it was given', () => {
    const text = dumps({ ...THREE, comments: {}, layout: {} });
    const doc = PipelineDoc.create();
    doc.setSource(text);
    expect(doc.getSource()).toBe(text);
    expect(doc.dirty).toBe(false);
    expect(doc.canUndo()).toBe(false);
  });

  it('leaves a file in its own style until it is changed', () => {
    const text = JSON.stringify(THREE, null, 4);
    const doc = PipelineDoc.create();
    doc.setSource(text);
    expect(doc.getSource()).toBe(text);
    doc.edit(draft => draft.set(['meta', 'name'], 'four'));
    expect(doc.getSource()).toBe(dumps({ ...THREE, name: 'four' }));
    doc.undo();
    expect(doc.getSource()).toBe(text);
  });

  it('keeps a file that is not a pipeline to the letter', () => {
    const doc = PipelineDoc.create();
    doc.setSource('{"convect": 1,');
    expect(doc.malformed).toMatchObject({ code: 'malformed-json' });
    doc.edit(draft => draft.set(['meta', 'name'], 'x'));
    expect(doc.getSource()).toBe('{"convect": 1,');
    doc.setSource(dumps(THREE));
    expect(doc.malformed).toBeNull();
    expect(doc.getSource()).toBe(dumps(THREE));
  });

  it('undoes one edit at a time, however quickly they follow', () => {
    const doc = open();
    const before = doc.getSource();
    doc.edit(draft => draft.set(['nodes', 'a', 'name'], 'A'));
    doc.edit(draft => draft.set(['nodes', 'b', 'resources', 'gpu'], 2));
    expect(doc.dirty).toBe(true);
    doc.undo();
    expect(doc.snapshot.nodes.b).toEqual(THREE.nodes.b);
    expect(doc.snapshot.nodes.a.name).toBe('A');
    doc.undo();
    expect(doc.getSource()).toBe(before);
    doc.redo();
    doc.redo();
    expect(doc.snapshot.nodes.b).toMatchObject({ resources: { gpu: 2 } });
  });

  it('undoes the letters typed into one field together', () => {
    const doc = open();
    for (const name of ['T', 'Tr', 'Tra']) {
      doc.edit(draft => draft.set(['nodes', 'a', 'name'], name), 'a.name');
    }
    doc.edit(draft => draft.set(['nodes', 'b', 'name'], 'B'), 'b.name');
    doc.undo();
    expect(doc.snapshot.nodes.a.name).toBe('Tra');
    doc.undo();
    expect(doc.snapshot.nodes.a.name).toBeUndefined();
  });

  it('keeps unchanged parts of the snapshot', () => {
    const doc = open();
    const { a, b } = doc.snapshot.nodes;
    const { layout } = doc.snapshot;
    doc.edit(draft => draft.set(['nodes', 'b', 'timeout'], '2h'));
    expect(doc.snapshot.nodes.a).toBe(a);
    expect(doc.snapshot.layout).toBe(layout);
    expect(doc.snapshot.nodes.b).not.toBe(b);
  });

  it('removes objects that become empty, but never a node', () => {
    const doc = open();
    doc.edit(draft => draft.set(['nodes', 'a', 'resources', 'gpu'], 1));
    doc.edit(draft => draft.set(['nodes', 'a', 'resources', 'gpu'], undefined));
    expect(doc.snapshot.nodes.a).toEqual(THREE.nodes.a);
  });

  it('merges the edits of two people', async () => {
    const { applyUpdate, encodeStateAsUpdate } = await import('yjs');
    const one = open();
    const two = PipelineDoc.create();
    applyUpdate(two.ydoc, encodeStateAsUpdate(one.ydoc));
    one.edit(draft => draft.set(['nodes', 'b', 'parameters', 'lr'], 0.1));
    two.edit(draft => draft.set(['nodes', 'b', 'parameters', 'depth'], 3));
    applyUpdate(two.ydoc, encodeStateAsUpdate(one.ydoc));
    applyUpdate(one.ydoc, encodeStateAsUpdate(two.ydoc));
    expect(one.getSource()).toBe(two.getSource());
    expect(one.snapshot.nodes.b).toMatchObject({
      parameters: { lr: 0.1, depth: 3 }
    });
    one.undo();
    expect(one.snapshot.nodes.b).toMatchObject({ parameters: { depth: 3 } });
  });

  it('starts an empty file as an empty pipeline', () => {
    const doc = PipelineDoc.create();
    expect(doc.getSource()).toBe('');
    addNodes(doc, [
      {
        id: 'x',
        node: { kind: 'notebook', path: 'x.ipynb' },
        at: { x: 1, y: 2 }
      }
    ]);
    expect(parse(doc.getSource()).document).toEqual({
      convect: 1,
      nodes: { x: { kind: 'notebook', path: 'x.ipynb' } },
      layout: { x: [1, 2] }
    });
  });
});

describe('edits', () => {
  it('gives new nodes ids that are free', () => {
    const doc = open();
    const node = { kind: 'notebook', path: 'a.ipynb' } as const;
    const at = { x: 0, y: 0 };
    expect(
      addNodes(doc, [
        { id: 'a', node, at },
        { id: 'a', node, at },
        { id: 'Größe (1)', node, at }
      ])
    ).toEqual(['a-2', 'a-3', 'Größe-1']);
  });

  it('connects once, and hands over values beside the order', () => {
    const doc = open();
    connect(doc, 'a', 'b');
    expect(doc.canUndo()).toBe(false);
    connectValue(doc, 'b', 'model', 'c', 'model');
    expect(doc.snapshot.nodes.c).toEqual({
      kind: 'script',
      path: 'c.py',
      after: ['a', 'b'],
      parameters: { model: '${{ nodes.b.outputs.model }}' }
    });
  });

  it('removes every mention of a node with it', () => {
    const doc = open();
    remove(doc, ['a']);
    expect(doc.snapshot).toEqual({
      convect: 1,
      name: 'three',
      nodes: {
        b: { kind: 'notebook', path: 'b.ipynb' },
        c: { kind: 'script', path: 'c.py', after: ['b'] }
      },
      layout: { b: [240, 0], c: [480, 0] }
    });
    doc.undo();
    expect(doc.snapshot).toEqual(THREE);
  });

  it('brings back what was removed and made anew', () => {
    const doc = open();
    remove(doc, ['c'], []);
    doc.edit(draft => draft.put('nodes', 'c', { kind: 'command' }));
    doc.undo();
    expect(doc.snapshot.nodes.c).toBeUndefined();
    doc.undo();
    expect(doc.snapshot).toEqual(THREE);
    doc.redo();
    doc.redo();
    expect(doc.snapshot.nodes.c).toEqual({ kind: 'command' });
  });

  it('renames a node everywhere', () => {
    const doc = open();
    expect(renameNode(doc, 'a', 'b')).toBe('b-2');
    expect(doc.snapshot.nodes.b).toMatchObject({
      after: ['b-2'],
      parameters: { rows: '${{ nodes.b-2.outputs.rows }}' }
    });
    expect(doc.snapshot.layout).toMatchObject({ 'b-2': [0, 0] });
    doc.undo();
    expect(doc.snapshot).toEqual(THREE);
  });
});
