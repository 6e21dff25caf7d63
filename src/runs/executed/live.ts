import type {
  ICodeCell,
  INotebookContent,
  IOutput
} from '@jupyterlab/nbformat';
import type { NotebookPanel } from '@jupyterlab/notebook';
import type { ICodeCellModel } from '@jupyterlab/cells';

import type { IAttemptKey } from '../../api';
import type { IRunChange, IRunStore } from '../../tokens';
import { Coalesced } from '../../ui/coalesce';
import { readOnly } from './content';

/**
 * Keeps an open executed notebook up to date while its run goes on. Only the
 * outputs that changed are put in place, so that nothing jumps.
 */
export function followRun(
  panel: NotebookPanel,
  key: IAttemptKey,
  runs: IRunStore
): void {
  const shown = new Map<number, string>();
  const refresh = new Coalesced(async () => {
    if (panel.isDisposed) {
      return;
    }
    try {
      update(panel, readOnly(await runs.api.notebook(key)), shown);
    } catch {
      return; // It is not there yet, or the server does not answer: the next event tells.
    }
  }, 1000);
  let isStale = true;
  const onRuns = (_: IRunStore, changes: readonly IRunChange[]) => {
    if (changes.some(({ id }) => id === key.run)) {
      isStale = true;
      look();
    }
  };
  const look = () => {
    if (panel.isVisible && (isStale || runs.isLive(key.run))) {
      isStale = false;
      refresh.request();
    }
  };
  // The notebook is saved while a cell runs, which is no change of the run.
  const timer = window.setInterval(look, 2000);
  runs.runsChanged.connect(onRuns);
  panel.disposed.connect(() => {
    window.clearInterval(timer);
    runs.runsChanged.disconnect(onRuns);
    refresh.dispose();
  });
  look();
}

function update(
  panel: NotebookPanel,
  notebook: INotebookContent,
  shown: Map<number, string>
): void {
  const model = panel.content.model;
  if (!model) {
    return;
  }
  if (model.cells.length !== notebook.cells.length) {
    void panel.context.revert();
    return;
  }
  notebook.cells.forEach((cell, index) => {
    if (cell.cell_type !== 'code') {
      return;
    }
    const { outputs, execution_count } = cell as ICodeCell;
    const state = JSON.stringify([outputs, execution_count]);
    if (shown.get(index) === state) {
      return;
    }
    const target = model.cells.get(index) as ICodeCellModel;
    if (shown.has(index) || !sameOutputs(target, outputs)) {
      target.outputs.fromJSON(outputs);
      target.executionCount = execution_count;
    }
    shown.set(index, state);
  });
  model.dirty = false;
}

function sameOutputs(cell: ICodeCellModel, outputs: IOutput[]): boolean {
  return (
    cell.outputs.length === outputs.length &&
    JSON.stringify(cell.outputs.toJSON()) === JSON.stringify(outputs)
  );
}

/** The first cell that shows an error, or -1. */
export function failedCell(panel: NotebookPanel): number {
  const cells = panel.content.model?.cells;
  for (let index = 0; cells && index < cells.length; index += 1) {
    const cell = cells.get(index);
    if (cell.type === 'code') {
      const outputs = (cell as ICodeCellModel).outputs.toJSON();
      if (outputs.some(output => output.output_type === 'error')) {
        return index;
      }
    }
  }
  return -1;
}
