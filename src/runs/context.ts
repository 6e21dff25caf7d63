import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

/** The label that keeps a run on top; it has no value. */
export const PIN = 'pinned';

/** The step of a run whose context menu is open. */
export function stepMeant(
  app: JupyterFrontEnd
): { run: string; step: string; node: string } | null {
  const {
    of: run,
    step,
    node
  } = app.contextMenuHitTest(element => !!element.dataset.of)?.dataset ?? {};
  return run && step && node ? { run, step, node } : null;
}

/** The runs that the arguments name or, without any, the one whose context menu is open. */
export function runsMeant(
  app: JupyterFrontEnd,
  args: ReadonlyPartialJSONObject
): string[] {
  if (Array.isArray(args.runs)) {
    return args.runs.map(String);
  }
  if (args.run) {
    return [String(args.run)];
  }
  const node = app.contextMenuHitTest(element => !!element.dataset.run);
  return node?.dataset.run ? [node.dataset.run] : [];
}
