import type { INotebookContent } from '@jupyterlab/nbformat';
import type { Contents, ServerConnection } from '@jupyterlab/services';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IConvectApi, IAttemptKey, IMadeFile } from '../../api';
import { ConvectError, fileOperation } from '../../api';

export const DRIVE = 'convect';

/** What shows executed notebooks. */
export const FACTORY = 'Executed Notebook';

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

/** A file that a step made or declared, and the run it is of. */
export type RunFile = { run: string } & Pick<
  IMadeFile,
  'step' | 'attempt' | 'file'
>;

/** Where such a file is found by everything in JupyterLab that opens files. */
export function pathOfFile({ run, step, attempt, file }: RunFile): string {
  return `${DRIVE}:${run}/${step}/${attempt}/${file}`;
}

/** What a path of this drive (without its name) is about, when that is no executed notebook. */
export function fileOf(path: string): RunFile | null {
  const parts = /^([^/]+)\/([^/]+)\/(\d+)\/((?:made|files)\/.+)$/.exec(path);
  return (
    parts && {
      run: parts[1],
      step: parts[2],
      attempt: Number(parts[3]),
      file: parts[4]
    }
  );
}

/**
 * The executed notebooks and the files of all runs, read only. The runs folder is nowhere in
 * the server's root folder, so JupyterLab cannot read it any other way.
 */
export class ExecutedDrive implements Contents.IDrive {
  constructor(private readonly api: IConvectApi) {
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
    const isWanted = options?.content !== false;
    const [file, key] = [fileOf(path), keyOf(path)];
    if (file && !path.endsWith('.ipynb')) {
      const format = options?.format ?? 'text';
      const content = isWanted ? await this.file(file, format) : null;
      return {
        ...model(path, { type: 'file', content, format }),
        mimetype: ''
      };
    }
    const source = file ?? key;
    if (!source) {
      return model(path, { type: 'directory', content: [], format: 'json' });
    }
    const content = isWanted ? await this.notebook(source) : null;
    return model(path, { type: 'notebook', content, format: 'json' });
  }

  async getDownloadUrl(path: string): Promise<string> {
    const [key, file] = [keyOf(path), fileOf(path)];
    if (file) {
      return this.api.url(...fileOperation(file.run, file));
    }
    return key ? this.api.url('notebook', key, { download: '1' }) : refuse();
  }

  async listCheckpoints(): Promise<Contents.ICheckpointModel[]> {
    return [];
  }

  private async file(
    file: RunFile,
    format: Contents.FileFormat
  ): Promise<string> {
    const [name, place] = fileOperation(file.run, file);
    const blob = await this.api[name](place);
    return format === 'base64' ? base64(blob) : blob.text();
  }

  private async notebook(
    source: RunFile | IAttemptKey
  ): Promise<INotebookContent> {
    const { readOnly } = await import('./content');
    return readOnly(
      'file' in source
        ? (JSON.parse(await this.file(source, 'text')) as INotebookContent)
        : await this.api.notebook(source)
    );
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

async function base64(blob: Blob): Promise<string> {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  const characters = Array.from(bytes, byte => String.fromCharCode(byte));
  return btoa(characters.join(''));
}

function refuse(): Promise<never> {
  return Promise.reject(
    new ConvectError('What a run left cannot be changed.', 422, 'refused')
  );
}
