import type { INotebookContent } from '@jupyterlab/nbformat';

import { textOf } from '../notebooks';

function notebook(...sources: string[]): INotebookContent {
  return {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {},
    cells: sources.map(source => ({
      cell_type: 'code',
      source,
      metadata: {},
      execution_count: null,
      outputs: [{ output_type: 'stream', name: 'stdout', text: 'said\n' }]
    }))
  };
}

describe('textOf', () => {
  it('has outputs only where they are asked for', () => {
    expect(textOf(notebook('x'))).toBe('# %% code\nx');
    expect(textOf(notebook('x'), { outputs: true })).toContain('said');
  });

  it('does not change cells for one that was put above them', () => {
    const executed = textOf(notebook('lr = 0.1', 'a', 'b'));
    expect(executed.endsWith(textOf(notebook('a', 'b')))).toBe(true);
  });
});
