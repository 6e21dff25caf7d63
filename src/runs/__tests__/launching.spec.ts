import type { IDocumentManager } from '@jupyterlab/docmanager';

import { pipelineInEditor } from '../launching';

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
