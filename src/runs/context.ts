import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

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
