import type {
  IMimeBundle,
  INotebookContent,
  IOutput
} from '@jupyterlab/nbformat';
import { isDisplayData, isExecuteResult, isStream } from '@jupyterlab/nbformat';

/**
 * A notebook as it is stored, made ready to be shown: texts that are stored as
 * lines are joined, cells cannot be edited, and nobody vouches for what they
 * show, so that JupyterLab keeps it from doing any harm.
 */
export function readOnly(notebook: INotebookContent): INotebookContent {
  return {
    ...notebook,
    cells: notebook.cells.map(cell => ({
      ...cell,
      source: joined(cell.source),
      metadata: {
        ...cell.metadata,
        editable: false,
        deletable: false,
        trusted: false
      },
      ...(Array.isArray(cell.outputs)
        ? { outputs: (cell.outputs as IOutput[]).map(whole) }
        : {})
    }))
  };
}

function whole(output: IOutput): IOutput {
  if (isStream(output)) {
    return { ...output, text: joined(output.text) };
  }
  if (!isDisplayData(output) && !isExecuteResult(output)) {
    return output;
  }
  const data: IMimeBundle = {};
  for (const [type, value] of Object.entries(output.data)) {
    data[type] = /^application\/(.*\+)?json$/.test(type)
      ? value
      : joined(value as string | string[]);
  }
  return { ...output, data };
}

function joined(text: string | string[]): string {
  return Array.isArray(text) ? text.join('') : text;
}
