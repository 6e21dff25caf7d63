import type { Contents } from '@jupyterlab/services';
import { nullTranslator } from '@jupyterlab/translation';

import { followRename, movedPaths } from '../renames';
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

describe('followRename', () => {
  it('reads pipelines only when something that they can name was renamed', async () => {
    const read: string[] = [];
    const contents = {
      get: async (path: string) => {
        read.push(path);
        return { content: [] };
      }
    } as unknown as Contents.IManager;
    const rename = (name: string, type = 'file') =>
      followRename(
        contents,
        {
          type: 'rename',
          oldValue: { path: `work/${name}` },
          newValue: { path: `work/new-${name}`, type }
        },
        [],
        nullTranslator.load('')
      );
    await rename('picture.png');
    expect(read).toEqual([]);
    await rename('train.ipynb');
    await rename('a.pipeline');
    await rename('folder', 'directory');
    expect(read).toEqual(['work', 'work', 'work']);
  });
});
