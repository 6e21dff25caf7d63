import { Poll } from '@lumino/polling';
import type { JSONSchema7 } from 'json-schema';

import type { IConvectApi } from '../api';
import { Coalesced } from '../ui/coalesce';
import { Observable } from '../ui/observable';
import { KINDS } from './ids';
import type { ISearchable, CatalogRow } from './search';
import { find, keyOf, prepare, rowsOf, wordsOf } from './search';
import type { ICatalog, ICatalogs, IComponent, IEntry } from './types';

/** How often to look for changes, in ms: always, and while a catalog is being read. */
const INTERVAL = 10000;
const BUSY_INTERVAL = 300;
/** How many times to look for a reading that does not begin. */
const PATIENCE = 30;

/** What is known of the component that is looked at. */
export interface IPreview {
  entry: IEntry;
  component: IComponent | null;
  error: unknown;
}

/**
 * The components of all catalogs, what is searched for, and which one is
 * looked at. Folders are watched by the server, so it is asked now and then
 * while somebody looks; the list itself only when a catalog has changed.
 */
export class CatalogModel extends Observable {
  constructor(readonly api: IConvectApi) {
    super();
    this._load = new Coalesced(() => this.load(), 100);
    this._look = new Coalesced(() => this.lookUp(), 80);
    this._poll = new Poll({
      name: 'jupyterlab-convect:catalogs',
      auto: false,
      factory: async () => this._load.request(),
      frequency: { interval: INTERVAL, backoff: false },
      standby: () => !this._isShown || document.hidden
    });
    void this._poll.start();
  }

  get catalogs(): readonly ICatalog[] {
    return this._catalogs;
  }

  /** The kinds of catalogs there can be. */
  get kinds(): readonly string[] {
    return this._kinds;
  }

  /** What a third party's kind wants to know, as a JSON Schema. */
  schemaOf(kind: string): JSONSchema7 | null {
    return this._schemas[kind] ?? null;
  }

  catalog(id: string): ICatalog | undefined {
    return this._catalogs.find(catalog => catalog.id === id);
  }

  /** All components, also those that could not be read. */
  get entries(): readonly IEntry[] {
    return this._entries;
  }

  get rows(): readonly CatalogRow[] {
    return this._rows;
  }

  /** How many components match. */
  get found(): number {
    return this._found;
  }

  get text(): string {
    return this._text;
  }

  /** True once the server has answered. */
  get isReady(): boolean {
    return this._isReady;
  }

  get error(): unknown {
    return this._error;
  }

  /** The row that the keyboard is at; -1 when there is none. */
  get cursor(): number {
    return this._cursor;
  }

  /** Grows whenever the row of the cursor is to be brought into sight. */
  get reveals(): number {
    return this._reveals;
  }

  get preview(): IPreview | null {
    return this._preview;
  }

  /** The key of the component that is looked at. */
  get lookedAt(): string | null {
    return this._preview && keyOf(this._preview.entry);
  }

  /** Somebody looks, or nobody does any more. */
  set isShown(value: boolean) {
    this._isShown = value;
    if (value) {
      this._load.request();
    }
  }

  search(text: string): void {
    this._text = text;
    this.arrange();
    if (wordsOf(text).length) {
      this.moveTo(this._rows.findIndex(row => row.kind === 'component'));
    }
    this.touch();
  }

  toggle(category: string): void {
    const closed = new Set(this._closed);
    if (!closed.delete(category)) {
      closed.add(category);
    }
    this._closed = closed;
    this.arrange();
    this.touch();
  }

  moveTo(index: number): void {
    this._cursor = Math.max(-1, Math.min(index, this._rows.length - 1));
    const row = this._rows[this._cursor];
    if (row?.kind === 'component') {
      this.look(row.entry);
    }
    this.touch();
  }

  /** Go to the first component of a catalog, or to the first that could not be read. */
  reveal(catalog: string, what: 'any' | 'errors' = 'any'): void {
    const entry = this._items.find(
      item =>
        item.entry.catalog === catalog &&
        (what === 'any' || item.entry.error !== null)
    )?.entry;
    if (!entry) {
      return;
    }
    this._text = '';
    const closed = new Set(this._closed);
    entry.categories.forEach(category => closed.delete(category));
    this._closed = closed;
    this.arrange();
    this._reveals += 1;
    this.moveTo(
      this._rows.findIndex(
        row => row.kind === 'component' && row.entry === entry
      )
    );
  }

  /** The whole component, from here or from the server. */
  async component(digest: string): Promise<IComponent> {
    let component = this._components.get(digest);
    if (!component) {
      component = this.api.component(digest);
      this._components.set(digest, component);
      component.catch(() => this._components.delete(digest));
    }
    return component;
  }

  async remove(id: string): Promise<void> {
    await this.api.deleteCatalog(id);
    await this.load();
  }

  /**
   * Wait until a catalog has been read, and show how far that is. Gives the
   * catalog as it is then, or null when it is gone.
   */
  async follow({ id, refreshed }: ICatalog): Promise<ICatalog | null> {
    for (let idle = 0; idle < PATIENCE; idle += 1) {
      await this.load();
      const catalog = this.catalog(id);
      if (!catalog || this.isDisposed) {
        return null;
      }
      if (!catalog.progress && catalog.refreshed !== refreshed) {
        return catalog;
      }
      if (catalog.progress) {
        idle = 0;
      }
      await new Promise(resolve => setTimeout(resolve, BUSY_INTERVAL));
    }
    return this.catalog(id) ?? null;
  }

  async take(id: string, digests: string[]): Promise<void> {
    await this.api.takeUpdates(id, { digests });
    await this.load();
  }

  /** Let a component run without a container, or no longer. */
  async approve(component: IComponent, approved: boolean): Promise<void> {
    const { digest, definition } = component;
    const changed = await this.api.approveComponent({ definition, approved });
    this._components.set(digest, Promise.resolve(changed));
    this._look.request();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._poll.dispose();
      this._load.dispose();
      this._look.dispose();
      super.dispose();
    }
  }

  private async loadEntries(): Promise<IEntry[]> {
    const entries: IEntry[] = [];
    for (;;) {
      const { components, total } = await this.api.listComponents({
        offset: entries.length
      });
      entries.push(...components);
      if (components.length === 0 || entries.length >= total) {
        return entries;
      }
    }
  }

  /** What no catalog has any more is not kept. */
  private forgetGone(): void {
    const digests = new Set(this._entries.map(({ digest }) => digest));
    for (const digest of this._components.keys()) {
      if (!digests.has(digest)) {
        this._components.delete(digest);
      }
    }
  }

  private async load(): Promise<void> {
    try {
      const { catalogs, kinds, schemas } = await this.api.catalogs();
      this._catalogs = catalogs;
      this._kinds = kinds;
      this._schemas = schemas;
      const stamp = stampOf(this._catalogs);
      if (stamp !== this._stamp) {
        this._entries = await this.loadEntries();
        this._items = prepare(this._entries);
        this.forgetGone();
        this._stamp = stamp;
        this.arrange();
        this.lookAgain();
      }
      this._isReady = true;
      this._error = null;
    } catch (error) {
      this._error = error;
    }
    this.touch();
  }

  /** Make the rows, and stay at the one that the keyboard is at. */
  private arrange(): void {
    const words = wordsOf(this._text);
    const entries = find(this._items, words);
    const key = this._rows[this._cursor]?.key;
    this._found = entries.filter(entry => entry.digest).length;
    this._rows = rowsOf(
      entries,
      category => words.length > 0 || !this._closed.has(category)
    );
    this._cursor = key ? this._rows.findIndex(row => row.key === key) : -1;
  }

  private look(entry: IEntry): void {
    if (this._preview?.entry !== entry) {
      this._preview = { entry, component: null, error: null };
      this._look.request();
    }
  }

  /** The component that is looked at may have changed, or be gone. */
  private lookAgain(): void {
    if (this._preview) {
      const key = this.lookedAt;
      const entry = this._entries.find(item => keyOf(item) === key);
      if (!entry) {
        this._preview = null;
      } else if (entry.digest !== this._preview.entry.digest) {
        this.look(entry);
      } else {
        this._preview = { ...this._preview, entry };
      }
    }
  }

  private async lookUp(): Promise<void> {
    const entry = this._preview?.entry;
    if (!entry?.digest) {
      return;
    }
    let found: Pick<IPreview, 'component' | 'error'>;
    try {
      found = { component: await this.component(entry.digest), error: null };
    } catch (error) {
      found = { component: null, error };
    }
    if (this._preview?.entry.digest === entry.digest) {
      this._preview = { ...this._preview, ...found };
      this.touch();
    }
  }

  private _catalogs: readonly ICatalog[] = [];
  private _closed: ReadonlySet<string> = new Set();
  private _components = new Map<string, Promise<IComponent>>();
  private _cursor = -1;
  private _entries: readonly IEntry[] = [];
  private _error: unknown = null;
  private _found = 0;
  private _isReady = false;
  private _isShown = false;
  private _items: readonly ISearchable[] = [];
  private _kinds: readonly string[] = KINDS;
  private _load: Coalesced;
  private _look: Coalesced;
  private _poll: Poll;
  private _preview: IPreview | null = null;
  private _reveals = 0;
  private _rows: readonly CatalogRow[] = [];
  private _schemas: ICatalogs['schemas'] = {};
  private _stamp = '';
  private _text = '';
}

/** Changes whenever the content of a catalog may have. */
function stampOf(catalogs: readonly ICatalog[]): string {
  return JSON.stringify(
    catalogs.map(catalog => ({ ...catalog, progress: null }))
  );
}
