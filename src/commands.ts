import type { JSONObject } from '@lumino/coreutils';

/** The names of all commands, for menus, the palette, settings and tests. */
export namespace CommandIDs {
  export const runAsPipeline = 'convect:run-as-pipeline';
  export const createPipeline = 'convect:new-pipeline';
  export const showRuns = 'convect:show-runs';
  export const showOthers = 'convect:show-others-runs';
  export const openRun = 'convect:open-run';
  export const openSweep = 'convect:open-sweep';
  export const stopRun = 'convect:stop-run';
  export const rerun = 'convect:rerun';
  export const cloneRun = 'convect:clone-run';
  export const editRun = 'convect:edit-run';
  export const pinRun = 'convect:pin-run';
  export const stopSweep = 'convect:stop-sweep';
  export const renameSweep = 'convect:rename-sweep';
  export const deleteSweep = 'convect:delete-sweep';
  export const deleteRun = 'convect:delete-run';
  export const compareRuns = 'convect:compare-runs';
  export const downloadRun = 'convect:download-run';
  export const putFiles = 'convect:put-files';
  export const openFile = 'convect:open-file';
  export const copyLink = 'convect:copy-link';
  export const followLink = 'convect:follow-link';
  export const openExecuted = 'convect:open-executed-notebook';
  export const openTensorBoard = 'convect:open-tensorboard';
  export const showCluster = 'convect:show-cluster';
  export const compareWithSource = 'convect:compare-with-source';
}

/** The category in the palette and the section in the launcher. */
export const CATEGORY = 'Convect';

/** What a command takes, as JupyterLab describes it: a sentence for each text, else a schema. */
export function takes(args: Record<string, string | JSONObject> = {}): {
  args: JSONObject;
} {
  const properties = Object.entries(args).map(([name, what]) => [
    name,
    typeof what === 'string' ? { type: 'string', description: what } : what
  ]);
  return {
    args: { type: 'object', properties: Object.fromEntries(properties) }
  };
}

/** Several texts, for `takes`. */
export function several(description: string): JSONObject {
  return { type: 'array', items: { type: 'string' }, description };
}
