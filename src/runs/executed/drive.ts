import type {
  IMimeBundle,
  INotebookContent,
  IOutput
} from '@jupyterlab/nbformat';
import { isDisplayData, isExecuteResult, isStream } from '@jupyterlab/nbformat';
import type { Contents, ServerConnection } from '@jupyterlab/services';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { ConvectApi, IAttemptKey } from '../../api';
import { ConvectError } from '../../api';

export const DRIVE = 'convect';

/** Where an executed notebook is found by everything in JupyterLab that opens files. */
export function pathOf(key: IAttemptKey, name: string): string {
  return `${DRIVE}:${key.run}/${key.step}/${key.attempt}/${name}`;
}

/** What a path of this drive (with or without its name) is about. */
export function keyOf(path: string): IAttemptKey | null {
  const local = path.startsWith(`${DRIVE}:`)
    ? path.slice(DRIVE.length + 1)
    : path;
  const parts = /^([^/]+)\/([^/]+)\/(\d+)\/[^/]+$/.exec(local);
  return parts && { run: parts[1], step: parts[2], attempt: Number(parts[3]) };
}

/**
 * The executed notebooks of all runs, read only. The runs folder is nowhere in
 * the server's root folder, so JupyterLab cannot read it any other way.
 */
export class ExecutedDrive implements Contents.IDrive {
  constructor(private readonly api: ConvectApi) {
    this.serverSettings = api.settings;
  }

  readonly name = DRIVE;
  readonly serverSettings: ServerConnection.ISettings;

  get fileChanged(): ISignal<this, Contents.IChangedArgs> {
    return this._fileChanged;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    Signal.clearData(this);
  }

  async get(
    path: string,
    options?: Contents.IFetchOptions
  ): Promise<Contents.IModel> {
    const key = keyOf(path);
    if (!key) {
      return model(path, { type: 'directory', content: [], format: 'json' });
    }
    const content =
      options?.content === false
        ? null
        : readOnly(await this.api.notebook(key));
    return model(path, { type: 'notebook', content, format: 'json' });
  }

  async getDownloadUrl(path: string): Promise<string> {
    const key = keyOf(path);
    return key ? this.api.notebookUrl(key) : refuse();
  }

  async listCheckpoints(): Promise<Contents.ICheckpointModel[]> {
    return [];
  }

  newUntitled = refuse;
  delete = refuse;
  rename = refuse;
  save = refuse;
  copy = refuse;
  createCheckpoint = refuse;
  restoreCheckpoint = refuse;
  deleteCheckpoint = refuse;

  private _fileChanged = new Signal<this, Contents.IChangedArgs>(this);
  private _isDisposed = false;
}

function model(
  path: string,
  rest: Pick<Contents.IModel, 'type' | 'content' | 'format'>
): Contents.IModel {
  const now = new Date().toISOString();
  return {
    name: path.split('/').pop() ?? '',
    path,
    created: now,
    last_modified: now,
    mimetype: 'application/json',
    writable: false,
    ...rest
  };
}

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

function refuse(): Promise<never> {
  return Promise.reject(
    new ConvectError('An executed notebook cannot be changed.', 422, 'refused')
  );
}
