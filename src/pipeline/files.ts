import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';

import type { ConvectApi, IDiscovery } from '../api';
import { ConvectError, sentenceOf } from '../api';
import type { Found } from './ports';
import { Store } from './store';

/** Requests at one time; a pipeline of a thousand files should not flood the server. */
const LANES = 4;

/**
 * What the files of a pipeline tell about themselves, asked once for each file
 * and again when it is saved.
 */
export class FileFacts implements IDisposable {
  constructor(
    private readonly api: ConvectApi,
    private readonly contents: Contents.IManager,
    /** Turns a path of the document into one of the server; null when it leads out. */
    private readonly resolve: (path: string) => string | null
  ) {
    contents.fileChanged.connect(this.onFileChanged, this);
  }

  /** By the path as the document has it. */
  readonly store = new Store<{ found: ReadonlyMap<string, Found> }>({
    found: new Map()
  });

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    this.contents.fileChanged.disconnect(this.onFileChanged, this);
    this.store.dispose();
  }

  /** Say which files are in the document now. */
  want(paths: Iterable<string>): void {
    this._wanted = new Set(paths);
    for (const path of this._wanted) {
      if (!this._asked.has(path)) {
        this._asked.add(path);
        this._queue.push(path);
      }
    }
    this.work();
  }

  /** Ask again for everything, such as when the folder has changed. */
  refresh(): void {
    const paths = this._wanted;
    this._asked.clear();
    this.want(paths);
  }

  private work(): void {
    while (this._busy < LANES && this._queue.length) {
      const path = this._queue.shift()!;
      this._busy++;
      void this.ask(path).then(found => {
        this._busy--;
        if (!this._isDisposed) {
          if (found) {
            const all = new Map(this.store.value.found);
            this.store.update({ found: all.set(path, found) });
          } else {
            this._asked.delete(path);
          }
          this.work();
        }
      });
    }
  }

  /** Null when the server did not answer: it is asked again with the next change. */
  private async ask(path: string): Promise<Found | null> {
    const place = this.resolve(path);
    if (place === null) {
      return { error: '', isMissing: true };
    }
    try {
      return await this.api.get<IDiscovery>('discover', { path: place });
    } catch (error) {
      if (error instanceof ConvectError && error.isUnreachable) {
        return null;
      }
      const isMissing = error instanceof ConvectError && error.isMissing;
      return { error: sentenceOf(error), isMissing };
    }
  }

  private onFileChanged(
    _: Contents.IManager,
    change: Contents.IChangedArgs
  ): void {
    const touched = [change.oldValue?.path, change.newValue?.path]
      .filter(path => path !== undefined)
      .map(path => this.contents.localPath(path));
    for (const path of this._wanted) {
      const place = this.resolve(path);
      if (place !== null && touched.some(item => isAtOrIn(place, item))) {
        this._asked.delete(path);
      }
    }
    this.want(this._wanted);
  }

  private _asked = new Set<string>();
  private _busy = 0;
  private _isDisposed = false;
  private _queue: string[] = [];
  private _wanted = new Set<string>();
}

/** Whether a path is this file or lies in this folder. */
export function isAtOrIn(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

/** A document's path as one of the server, or null when it leads out of the root. */
export function resolvePath(folder: string, path: string): string | null {
  const joined = PathExt.normalize(PathExt.join(folder, path));
  return path.startsWith('/') || joined.startsWith('..') ? null : joined;
}
