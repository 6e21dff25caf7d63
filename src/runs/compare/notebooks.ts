import type { ICell, INotebookContent } from '@jupyterlab/nbformat';

/** A notebook as text that can be compared: its cells one after the other, each with a heading. */
export function textOf(
  notebook: INotebookContent,
  options: { outputs?: boolean } = {}
): string {
  return notebook.cells
    .map(cell => {
      // Without its number: one cell more above it is no change of it.
      const heading = `# %% ${headingOf(cell)}`;
      const parts = [heading, joined(cell.source)];
      if (options.outputs) {
        const printed = printedBy(cell);
        if (printed) {
          parts.push(`# %% output\n${printed}`);
        }
      }
      return parts.join('\n');
    })
    .join('\n\n');
}

function headingOf(cell: ICell): string {
  const tags = cell.metadata.tags;
  const tagged =
    Array.isArray(tags) && tags.length > 0 ? ` ${tags.join(' ')}` : '';
  return `${cell.cell_type}${tagged}`;
}

interface IAnyOutput {
  output_type: string;
  text?: string | string[];
  data?: Record<string, string | string[]>;
  ename?: string;
  evalue?: string;
}

/** What a cell printed or showed, as text. */
function printedBy(cell: ICell): string {
  const outputs = (cell.outputs ?? []) as unknown as IAnyOutput[];
  return outputs
    .map(output => {
      if (output.output_type === 'stream') {
        return joined(output.text ?? '');
      }
      if (output.output_type === 'error') {
        return `${output.ename}: ${output.evalue}`;
      }
      const data = output.data ?? {};
      return data['text/plain']
        ? joined(data['text/plain'])
        : Object.keys(data).join(', ');
    })
    .join('\n');
}

function joined(text: string | string[]): string {
  return Array.isArray(text) ? text.join('') : text;
}
