import { PathExt } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import { NotebookPanel } from '@jupyterlab/notebook';

import type { IConvectApi, IAttemptKey } from '../../api';
import type { IRunStore } from '../../tokens';
import { convectIcon } from '../../icons';
import { plannedOf } from '../page/outline';
import { mostTelling } from '../page/model';
import { FACTORY, pathOf } from './drive';
import { failedCell, follow } from './live';

/** What is meant: a run, and of it a step, an attempt and a cell if they are named. */
export interface IWanted {
  run: string;
  step?: string;
  attempt?: number;
  cell?: number;
}

/** The attempt that is meant: of the step named, else of the most telling one. */
export async function locate(
  api: IConvectApi,
  wanted: IWanted
): Promise<{ key: IAttemptKey; name: string }> {
  const view = await api.run(wanted.run);
  const id = wanted.step ?? mostTelling(view);
  const found = plannedOf(view, id);
  const planned = found ?? view.plan.steps[0];
  const step = found ? id : planned.id;
  const attempts = view.steps[step]?.attempts.length ?? 1;
  const attempt = wanted.attempt ?? Math.max(1, attempts);
  return {
    key: { run: view.id, step, attempt },
    name: `${PathExt.basename(planned.path ?? planned.id, '.ipynb')}.executed.ipynb`
  };
}

const followed = new WeakSet<NotebookPanel>();

/** Open an executed notebook, at its failing cell unless another one is named. */
export async function openExecuted(
  wanted: IWanted,
  runs: IRunStore,
  documents: IDocumentManager
): Promise<void> {
  const { key, name } = await locate(runs.api, wanted);
  // Asked for first: a missing one is said in a sentence and not in a dialog.
  await runs.api.notebook(key);
  const widget = documents.openOrReveal(pathOf(key, name), FACTORY);
  if (!(widget instanceof NotebookPanel)) {
    return;
  }
  await widget.context.ready;
  await widget.revealed;
  if (!followed.has(widget)) {
    followed.add(widget);
    widget.title.icon = convectIcon.bindprops({ stylesheet: 'mainAreaTab' });
    follow(widget, key, runs);
  }
  const cell = wanted.cell ?? failedCell(widget);
  if (cell >= 0) {
    widget.content.activeCellIndex = cell;
    await widget.content.scrollToItem(cell, 'smart');
  }
}
