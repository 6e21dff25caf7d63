import type { INotebookContent } from '@jupyterlab/nbformat';

import type { IConvectApi } from '../../../api';
import { readOnly } from '../content';
import {
  DRIVE,
  ExecutedDrive,
  fileOf,
  keyOf,
  pathOf,
  pathOfFile
} from '../drive';

const notebook = {
  nbformat: 4,
  nbformat_minor: 5,
  metadata: {},
  cells: [
    {
      cell_type: 'code',
      source: ['a\n', 'b'],
      metadata: { trusted: true, tags: ['x'] },
      execution_count: 1,
      outputs: [
        { output_type: 'stream', name: 'stdout', text: ['1\n', '2\n'] },
        {
          output_type: 'display_data',
          metadata: {},
          data: { 'text/html': ['<b>', '</b>'], 'application/json': ['kept'] }
        }
      ]
    }
  ]
} as unknown as INotebookContent;

describe('an executed notebook', () => {
  it('is found by its path and back', () => {
    const key = { run: 'r', step: 'train', attempt: 2 };
    expect(keyOf(pathOf(key, 'my notebook.ipynb'))).toEqual(key);
    expect(keyOf('')).toBeNull();
  });

  it('is whole, cannot be edited, and is not trusted', () => {
    const [cell] = readOnly(notebook).cells;
    expect(cell.source).toBe('a\nb');
    expect(cell.metadata).toEqual({
      trusted: false,
      editable: false,
      deletable: false,
      tags: ['x']
    });
    expect(cell.outputs).toMatchObject([
      { text: '1\n2\n' },
      { data: { 'text/html': '<b></b>', 'application/json': ['kept'] } }
    ]);
  });

  it('is refused to be written', async () => {
    const api = { notebook: async () => notebook, settings: {} };
    const drive = new ExecutedDrive(api as unknown as IConvectApi);
    const model = await drive.get('r/train/1/train.ipynb');
    expect(model.writable).toBe(false);
    await expect(drive.save()).rejects.toThrow('cannot be changed');
    drive.dispose();
  });
});

describe('a file of a run', () => {
  const file = { run: 'r', step: 'train', attempt: 2, file: 'made/a/图.csv' };
  const local = pathOfFile(file).slice(DRIVE.length + 1);

  it('is found by its path and back, and is no executed notebook', () => {
    expect(fileOf(local)).toEqual(file);
    expect(keyOf(local)).toBeNull();
    expect(fileOf('r/train/2/train.executed.ipynb')).toBeNull();
    expect(fileOf('r/train/2/step.json')).toBeNull();
  });

  it('is read as text or as bytes, as asked', async () => {
    const bytes = new Uint8Array([195, 164]);
    const blob = { text: async () => 'ä', arrayBuffer: async () => bytes };
    const api = { madeFile: async () => blob, settings: {} };
    const drive = new ExecutedDrive(api as unknown as IConvectApi);
    const read = async (format: 'text' | 'base64') =>
      (await drive.get(local, { format })).content;
    expect(await read('text')).toBe('ä');
    expect(await read('base64')).toBe('w6Q=');
    const { type, writable } = await drive.get(local, { content: false });
    expect([type, writable]).toEqual(['file', false]);
    drive.dispose();
  });

  it('is a notebook that cannot be edited when it is one', async () => {
    const cell = { cell_type: 'markdown', source: ['a', 'b'], metadata: {} };
    const text = async () => JSON.stringify({ cells: [cell] });
    const api = { madeFile: async () => ({ text }), settings: {} };
    const drive = new ExecutedDrive(api as unknown as IConvectApi);
    const made = pathOfFile({ ...file, file: 'made/report.ipynb' });
    const found = await drive.get(made.slice(DRIVE.length + 1));
    expect([found.type, found.writable]).toEqual(['notebook', false]);
    expect(found.content.cells).toMatchObject([
      { source: 'ab', metadata: { editable: false } }
    ]);
    drive.dispose();
  });
});
