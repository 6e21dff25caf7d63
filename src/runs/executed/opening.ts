import { PathExt } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { Notebook } from '@jupyterlab/notebook';
import { NotebookPanel } from '@jupyterlab/notebook';

import type { IConvectApi, IAttemptKey } from '../../api';
import type { IRunStore } from '../../tokens';
import { convectIcon } from '../../icons';
import { plannedOf } from '../page/outline';
import { mostTelling } from '../page/model';
import { FACTORY, pathOf } from './drive';
import { failedCell, followRun } from './live';

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

/** Looks at most; in how many of them in a row a cell stays; milliseconds between them. */
const LOOKS = 50;
const SETTLED = 3;
const PAUSE = 100;

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
    followRun(widget, key, runs);
  }
  const cell = wanted.cell ?? failedCell(widget);
  if (cell >= 0) {
    widget.content.activeCellIndex = cell;
    await bringIntoView(widget.content, cell);
  }
}

/** Scroll to a cell, and again while what is drawn above it pushes it out of sight. */
export async function bringIntoView(
  notebook: Pick<Notebook, 'node' | 'widgets' | 'scrollToItem'>,
  cell: number
): Promise<void> {
  for (let looks = 0, seen = 0; looks < LOOKS && seen < SETTLED; looks++) {
    if (seen === 0) {
      // It is given up when somebody wants to see something else, or may never end.
      notebook.scrollToItem(cell, 'smart').catch(() => undefined);
    }
    await new Promise(resolve => setTimeout(resolve, PAUSE));
    seen = isInSight(notebook, cell) ? seen + 1 : 0;
  }
}

function isInSight(
  { node, widgets }: Pick<Notebook, 'node' | 'widgets'>,
  cell: number
): boolean {
  if (widgets[cell] === undefined) {
    return true; // It was closed meanwhile.
  }
  const frame = node.getBoundingClientRect();
  const { top, bottom } = widgets[cell].node.getBoundingClientRect();
  return top < bottom && top < frame.bottom && bottom > frame.top;
}
