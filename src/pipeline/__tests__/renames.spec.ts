import { movedPaths } from '../renames';
import type { IDocument } from '../schema';

const DOCUMENT: IDocument = {
  convect: 1,
  nodes: {
    a: { kind: 'notebook', path: 'a.ipynb' },
    b: { kind: 'script', path: '../lib/b.py' },
    c: { kind: 'command', command: ['true'] }
  }
};

describe('movedPaths', () => {
  const move = (from: string, to: string) =>
    Object.fromEntries(movedPaths(DOCUMENT, 'work/x.pipeline', from, to));

  it('follows a file, also into another folder', () => {
    expect(move('work/a.ipynb', 'work/new.ipynb')).toEqual({ a: 'new.ipynb' });
    expect(move('work/a.ipynb', 'old/a.ipynb')).toEqual({
      a: '../old/a.ipynb'
    });
  });

  it('follows a folder', () => {
    expect(move('lib', 'tools')).toEqual({ b: '../tools/b.py' });
  });

  it('leaves names that only begin alike', () => {
    expect(move('work/a', 'work/z')).toEqual({});
  });
});
