import type { INotebookContent } from '@jupyterlab/nbformat';

import type { ConvectApi } from '../../../api';
import { readOnly } from '../content';
import { ExecutedDrive, keyOf, pathOf } from '../drive';

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
    const drive = new ExecutedDrive(api as unknown as ConvectApi);
    const model = await drive.get('r/train/1/train.ipynb');
    expect(model.writable).toBe(false);
    await expect(drive.save()).rejects.toThrow('cannot be changed');
    drive.dispose();
  });
});
