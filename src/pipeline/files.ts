import { PathExt } from '@jupyterlab/coreutils';
import type { Contents } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';

import type { IConvectApi, IDiscovery } from '../api';
import { Coalesced } from '../ui/coalesce';
import type { Found } from './ports';
import { Store } from './store';

/** Files in one question; the first of a large pipeline are shown before the last are read. */
const MANY = 200;

/** What the server says of a file that has changed since it was asked last. */
interface IFileNow {
  stamp: string;
  found?: IDiscovery;
  error?: { code: string; message: string; hint: string | null };
}

/**
 * What the files of a pipeline tell about themselves. `request` asks for what
 * is not known yet and for what has changed since, all in one question.
 */
export class FileFacts implements IDisposable {
  constructor(
    private readonly api: Pick<IConvectApi, 'discoverChanged'>,
    private readonly contents: Pick<
      Contents.IManager,
      'fileChanged' | 'localPath'
    >,
    /** Turns a path of the document into one of the server; null when it leads out. */
    private readonly resolve: (path: string) => string | null
  ) {
    this._look = new Coalesced(() => this.look(), 0);
    contents.fileChanged.connect(this.onFileChanged, this);
  }

  /** By the path as the document has it. */
  readonly store = new Store<{ found: ReadonlyMap<string, Found> }>({
    found: new Map()
  });

  get isDisposed(): boolean {
    return this._look.isDisposed;
  }

  dispose(): void {
    this.contents.fileChanged.disconnect(this.onFileChanged, this);
    this._look.dispose();
    this.store.dispose();
  }

  /** Say which files are in the document now. */
  want(paths: Iterable<string>): void {
    this._wanted = new Set(paths);
    const { found } = this.store.value;
    if ([...this._wanted].some(path => !found.has(path))) {
      this.request();
    }
  }

  /** Ask whether a file has changed. */
  request(): void {
    this._look.request();
  }

  private async look(): Promise<void> {
    const wanted = [...this._wanted];
    const outside = wanted.filter(path => this.resolve(path) === null);
    this.publish(new Map(outside.map(path => [path, OUTSIDE])));
    const inside = wanted.filter(path => this.resolve(path) !== null);
    for (let at = 0; at < inside.length; at += MANY) {
      const places = new Map(
        inside.slice(at, at + MANY).map(path => [path, this.resolve(path)!])
      );
      let files: { [place: string]: IFileNow };
      try {
        ({ files } = await this.api.discoverChanged({
          files: Object.fromEntries(
            [...places].map(([path, place]) => [
              place,
              this.stampOf(path, place)
            ])
          )
        }));
      } catch {
        return; // The next look asks again.
      }
      if (this.isDisposed) {
        return;
      }
      const news = new Map<string, Found>();
      for (const [path, place] of places) {
        if (Object.hasOwn(files, place)) {
          this._stamps.set(path, { place, stamp: files[place].stamp });
          news.set(path, factsOf(files[place]));
        }
      }
      this.publish(news);
    }
  }

  /** By what a file is known that has been read; null for any other. */
  private stampOf(path: string, place: string): string | null {
    const known = this._stamps.get(path);
    return known?.place === place && this.store.value.found.has(path)
      ? known.stamp
      : null;
  }

  /** All news at once, so that everything is drawn and checked once. */
  private publish(news: ReadonlyMap<string, Found>): void {
    const { found } = this.store.value;
    const changed = [...news].filter(
      ([path, facts]) => found.get(path) !== facts
    );
    const lost = [...found.keys()].filter(path => !this._wanted.has(path));
    if (changed.length || lost.length) {
      const all = new Map([...found, ...changed]);
      lost.forEach(path => {
        all.delete(path);
        this._stamps.delete(path);
      });
      this.store.update({ found: all });
    }
  }

  private onFileChanged(
    _: unknown,
    { oldValue, newValue }: Contents.IChangedArgs
  ): void {
    const touched = [oldValue?.path, newValue?.path]
      .filter(path => path !== undefined)
      .map(path => this.contents.localPath(path));
    const places = [...this._wanted].map(path => this.resolve(path));
    if (
      places.some(
        place => place !== null && touched.some(item => isAtOrIn(place, item))
      )
    ) {
      this.request();
    }
  }

  private _look: Coalesced;
  private _stamps = new Map<string, { place: string; stamp: string }>();
  private _wanted: ReadonlySet<string> = new Set();
}

const OUTSIDE: Found = { error: '', isMissing: true };

function factsOf({ found, error }: IFileNow): Found {
  if (found) {
    return found;
  }
  const { code, message, hint } = error!;
  return {
    error: hint ? `${message} ${hint}` : message,
    isMissing: code === 'missing'
  };
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
