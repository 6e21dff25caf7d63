import { PathExt } from '@jupyterlab/coreutils';

/** The names of the editor's commands. */
export namespace EditorCommands {
  export const create = 'convect:new-pipeline';
  export const createFromFiles = 'convect:new-pipeline-from-files';
  export const addFiles = 'convect:pipeline-add-files';
  export const addComponent = 'convect:pipeline-add-component';
  export const approve = 'convect:pipeline-approve-component';
  export const updateComponent = 'convect:pipeline-update-component';
  export const addCommand = 'convect:pipeline-add-command';
  export const addNote = 'convect:pipeline-add-note';
  export const properties = 'convect:pipeline-properties';
  export const problems = 'convect:pipeline-problems';
  export const openFile = 'convect:pipeline-open-file';
  export const copy = 'convect:pipeline-copy';
  export const cut = 'convect:pipeline-cut';
  export const paste = 'convect:pipeline-paste';
  export const duplicate = 'convect:pipeline-duplicate';
  export const remove = 'convect:pipeline-remove';
  export const find = 'convect:pipeline-find';
  export const selectAll = 'convect:pipeline-select-all';
  export const align = 'convect:pipeline-align';
  export const layout = 'convect:pipeline-layout';
  export const group = 'convect:pipeline-group';
  export const ungroup = 'convect:pipeline-ungroup';
  export const leaveGroup = 'convect:pipeline-leave-group';
  export const disable = 'convect:pipeline-disable';
  export const fold = 'convect:pipeline-fold';
  export const connect = 'convect:pipeline-connect';
  export const enter = 'convect:pipeline-enter';
  export const escape = 'convect:pipeline-escape';
  export const nudge = 'convect:pipeline-nudge';
  export const toggleSelected = 'convect:pipeline-toggle-selected';
  export const go = 'convect:pipeline-go';
  export const zoom = 'convect:pipeline-zoom';
  export const undo = 'convect:pipeline-undo';
  export const redo = 'convect:pipeline-redo';
  export const run = 'convect:pipeline-run';
  export const stop = 'convect:pipeline-stop';
  export const openStep = 'convect:pipeline-open-step';
  export const exportPicture = 'convect:pipeline-export-picture';
  export const exportToKfp = 'convect:pipeline-export-to-kfp';
  export const publish = 'convect:pipeline-publish';
}

export const FACTORY = 'Pipeline Editor';
export const FILE_TYPE = 'pipeline';
export const SUFFIX = '.pipeline';

/** What the component catalog puts on its drags: `IComponentDrop` as JSON. */
export const COMPONENT = 'application/x-convect-component';

type FileKind = 'notebook' | 'script' | 'pipeline';

const KINDS: { [suffix: string]: FileKind } = {
  '.ipynb': 'notebook',
  '.py': 'script',
  '.r': 'script',
  '.sh': 'script',
  [SUFFIX]: 'pipeline'
};

/** What sort of node a file makes, if any. */
export function kindOf(path: string): FileKind | undefined {
  return KINDS[PathExt.extname(path).toLowerCase()];
}

export function isRunnable(path: string): boolean {
  return kindOf(path) !== undefined;
}
