import type { IDocumentManager } from '@jupyterlab/docmanager';

import { filesOf, isElyra, pipelineInEditor, unsaved } from '../launching';

const documents = (content: string | null, dirty: boolean) =>
  ({
    findWidget: () => (content === null ? undefined : {}),
    contextForWidget: () => ({ model: { dirty, toString: () => content } })
  }) as unknown as IDocumentManager;

describe('the pipeline that a run is asked for', () => {
  it('is that of the editor when it has changed there', () => {
    const content = '{"convect":1,"nodes":{}}';
    const found = (text: string | null, dirty: boolean) =>
      pipelineInEditor(documents(text, dirty), 'a.pipeline');
    expect(found(content, true)).toEqual({ convect: 1, nodes: {} });
    expect(found(content, false)).toBeNull();
    expect(found(null, true)).toBeNull();
    expect(found('{"doc_type":"pipeline"}', true)).toBeNull();
    expect(found('{"convect"', true)).toBeNull();
  });
});

describe('a pipeline of Elyra', () => {
  it('is told from ours, and from what is none', () => {
    expect(isElyra('{"doc_type":"pipeline","pipelines":[]}')).toBe(true);
    expect(isElyra('{"convect":1,"pipelines":[]}')).toBe(false);
    expect(isElyra('{"nodes":{}}')).toBe(false);
    expect(isElyra('{')).toBe(false);
    expect(isElyra('')).toBe(false);
  });
});

describe('what is not saved', () => {
  it('is also a notebook inside the pipeline', async () => {
    const content = { nodes: { a: { kind: 'notebook', path: 'sub/a.ipynb' } } };
    const subject = {
      path: 'p/x.pipeline',
      document: null,
      content,
      title: ''
    };
    expect(filesOf(subject)).toEqual(['p/x.pipeline', 'p/sub/a.ipynb']);
    const saved: string[] = [];
    const open = {
      findWidget: (path: string) =>
        path.endsWith('.ipynb') ? path : undefined,
      contextForWidget: (path: string) => ({
        path,
        model: { dirty: true },
        save: async () => void saved.push(path)
      })
    } as unknown as IDocumentManager;
    const found = unsaved(open, filesOf(subject));
    expect(found?.names).toEqual(['a.ipynb']);
    await found?.save();
    expect(saved).toEqual(['p/sub/a.ipynb']);
    expect(unsaved(documents('', false), ['x.ipynb'])).toBeUndefined();
  });
});
