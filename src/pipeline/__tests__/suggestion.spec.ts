import type { IProblem } from '../../api';
import { PipelineDoc } from '../model';
import type { IDocument } from '../schema';
import { dumps } from '../serialize';
import { takeSuggestion, suggestionFor } from '../suggestion';

const DOCUMENT: IDocument = {
  convect: 1,
  nodes: {
    load: { kind: 'notebook', path: 'data/laod.ipynb' },
    fit: {
      kind: 'command',
      command: ['fit'],
      after: ['other', 'laod'],
      parameters: { leraning: 3, rate: '${{ parameters.raet }}' },
      resources: { memory: '2GB' }
    }
  }
};

describe('what a hint suggests', () => {
  const problem = (
    node: string,
    path: (string | number)[],
    message: string,
    meant: string
  ): IProblem => ({
    severity: 'error',
    code: 'x',
    message,
    node,
    path,
    hint: `Did you mean ${meant}?`
  });
  const mend = (given: IProblem) => {
    const doc = PipelineDoc.create();
    doc.setSource(dumps(DOCUMENT));
    const found = suggestionFor(doc.snapshot, given);
    if (found) {
      takeSuggestion(doc, found);
    }
    return doc.snapshot.nodes as unknown as Record<
      string,
      Record<string, unknown>
    >;
  };

  it('is done where it belongs: in a text, a list, an expression or a key', () => {
    const path = problem(
      'load',
      ['path'],
      'There is no file “project/data/laod.ipynb”.',
      '“load.ipynb”'
    );
    expect(mend(path).load.path).toBe('data/load.ipynb');
    const after = problem('fit', ['after', 1], 'No node “laod”.', '“load”');
    expect(mend(after).fit.after).toEqual(['other', 'load']);
    const used = problem(
      'fit',
      ['parameters', 'rate'],
      'There is no parameter “raet”.',
      '“rate”'
    );
    expect(mend(used).fit.parameters).toMatchObject({
      rate: '${{ parameters.rate }}'
    });
    const amount = problem(
      'fit',
      ['resources', 'memory'],
      '“2GB” is not an amount.',
      '2Gi'
    );
    expect(mend(amount).fit.resources).toEqual({ memory: '2Gi' });
    const key = problem(
      'fit',
      ['parameters', 'leraning'],
      '“fit.ipynb” has no parameter “leraning”.',
      '“learning”'
    );
    expect(mend(key).fit.parameters).toEqual({
      rate: '${{ parameters.raet }}',
      learning: 3
    });
  });

  it('is not offered where it cannot be done', () => {
    const gone = problem('fit', ['kind'], 'It is not “x”.', '“y”');
    expect(suggestionFor(DOCUMENT, gone)).toBeNull();
    expect(suggestionFor(DOCUMENT, { ...gone, hint: 'Remove it.' })).toBeNull();
    expect(suggestionFor(DOCUMENT, { ...gone, node: null })).toBeNull();
  });
});
