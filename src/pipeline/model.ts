import type { DocumentChange, StateChange } from '@jupyter/ydoc';
import { YDocument } from '@jupyter/ydoc';
import { JSONExt } from '@lumino/coreutils';
import * as Y from 'yjs';

import type { IDocument, Json } from './schema';
import { VERSION } from './schema';
import type { IMalformed } from './serialize';
import { check, dumps, isObject, parse } from './serialize';

export interface IPipelineChange extends DocumentChange {
  /** Something of the content has changed; `snapshot` has it. */
  contentChange?: boolean;
  stateChange?: StateChange<unknown>[];
}

type JsonObject = { [key: string]: Json };
type Shared = Y.Map<unknown>;

export type DeepSection = 'nodes' | 'comments';
export type FlatSection = 'layout' | 'components';
export type Section = DeepSection | FlatSection;

const DEEP: readonly Section[] = ['nodes', 'comments'];
const SECTIONS: readonly Section[] = [
  'nodes',
  'comments',
  'layout',
  'components'
];

/** Where a value is: in a node, in a comment, or (`meta`) in the document. */
export type Path = ['meta' | DeepSection, ...string[]];

const EMPTY = Object.freeze({
  convect: VERSION,
  nodes: Object.freeze({})
}) as IDocument;

/**
 * A pipeline that several people can edit at once.
 *
 * The structure is the one that `jupyterlab_convect/pipeline/ydoc.py` describes.
 * Readers look at `snapshot`, an immutable document whose unchanged parts stay
 * the same objects from one change to the next. Writers call `edit`.
 */
export class PipelineDoc extends YDocument<IPipelineChange> {
  constructor() {
    super();
    this._meta = this.ydoc.getMap('meta');
    this._raw = this.ydoc.getMap('raw');
    for (const section of SECTIONS) {
      const shared: Shared = this.ydoc.getMap(section);
      this._sections[section] = shared;
      shared.observeDeep(events => this._onSectionChange(section, events));
    }
    this._meta.observeDeep(() => this._onMetaChange());
    this._raw.observe(() => this._onMetaChange());
    this.undoManager.addToScope([this._meta, ...Object.values(this._sections)]);
    // Gestures are set apart by `edit`, not by the clock.
    this.undoManager.captureTimeout = Number.MAX_SAFE_INTEGER;
    // Or what was cut and pasted could not be brought back: its key was used again.
    this.undoManager.ignoreRemoteMapChanges = true;
    this.ydoc.on('afterTransaction', this._announce);
  }

  static create(): PipelineDoc {
    return new PipelineDoc();
  }

  readonly version = '1.0.0';

  /** The document as it is now; empty while the file is not a pipeline. */
  get snapshot(): IDocument {
    return this._snapshot;
  }

  /** Why the file cannot be edited as a pipeline, if that is so. */
  get malformed(): IMalformed | null {
    return this._malformed;
  }

  override getSource(): string {
    const raw = this._raw.get('text');
    if (typeof raw === 'string') {
      return raw;
    }
    if (!this._meta.size) {
      return '';
    }
    const text = dumps(this._snapshot);
    const written = this._raw.get('written');
    // Opening and saving changes nothing, whoever wrote the file.
    return typeof written === 'string' && isSame(written, text)
      ? written
      : text;
  }

  /** Take over a file's text, touching only what differs. */
  override setSource(value: string): void {
    const parsed = parse(value);
    const isLoad = this._meta.size === 0;
    this.undoManager.stopCapturing();
    this.transact(() => {
      if (parsed.document) {
        this._setDocument(parsed.document as unknown as JsonObject);
        this._raw.delete('text');
        if (value === dumps(parsed.document)) {
          this._raw.delete('written');
        } else if (this._raw.get('written') !== value) {
          this._raw.set('written', value);
        }
      } else if (this._raw.get('text') !== value) {
        this._raw.set('text', value);
      }
    }, !isLoad);
    this.undoManager.stopCapturing();
  }

  /**
   * Change the document: one call is one step of undo.
   *
   * Consecutive calls with the same `gesture` are one step together, such as
   * the letters typed into one field.
   */
  edit(change: (draft: Draft) => void, gesture?: string): void {
    if (this._malformed) {
      return;
    }
    if (gesture === undefined || gesture !== this._gesture) {
      this.undoManager.stopCapturing();
    }
    this._gesture = gesture;
    this.transact(() => {
      if (this._meta.size === 0) {
        this._meta.set('convect', VERSION);
        this._meta.set('nodes', new Y.Map());
      }
      change(new Draft(this._meta, this._sections));
    });
    this.dirty = true;
  }

  override undo(): boolean {
    this._gesture = undefined;
    return super.undo();
  }

  override redo(): boolean {
    this._gesture = undefined;
    return super.redo();
  }

  private _setDocument(content: JsonObject): void {
    const meta = { ...content };
    for (const section of SECTIONS) {
      const items = content[section];
      if (isObject(items)) {
        meta[section] = {};
      }
      merge(
        this._sections[section],
        isObject(items) ? items : {},
        DEEP.includes(section)
      );
    }
    merge(this._meta, meta, true);
  }

  private _onSectionChange(
    section: Section,
    events: Y.YEvent<Y.AbstractType<unknown>>[]
  ): void {
    const shared = this._sections[section];
    const keys = new Set<string>();
    for (const event of events) {
      if (event.target === shared) {
        (event as Y.YMapEvent<unknown>).keysChanged.forEach(key =>
          keys.add(key)
        );
      } else {
        keys.add(String(event.path[0]));
      }
    }
    const items = { ...this._parts[section] };
    for (const key of keys) {
      if (shared.has(key)) {
        items[key] = plain(shared.get(key));
      } else {
        delete items[key];
      }
    }
    this._parts[section] = items;
    this._isStale = true;
  }

  private _onMetaChange(): void {
    // Unchanged parts stay the same objects, so that views can tell.
    const before = this._metaPart;
    const now = plain(this._meta) as JsonObject;
    for (const key of Object.keys(now)) {
      if (
        before[key] !== undefined &&
        JSONExt.deepEqual(before[key], now[key])
      ) {
        now[key] = before[key];
      }
    }
    this._metaPart = now;
    this._isStale = true;
  }

  private _announce = (): void => {
    if (!this._isStale) {
      return;
    }
    this._isStale = false;
    const content = { ...this._metaPart };
    for (const section of SECTIONS) {
      const items = this._parts[section];
      if (Object.keys(items).length) {
        content[section] = items;
      }
    }
    const raw = this._raw.get('text');
    if (typeof raw === 'string') {
      this._malformed = parse(raw).malformed ?? { code: 'not-an-object' };
    } else {
      this._malformed = this._meta.size ? check(content) : null;
    }
    this._snapshot =
      this._malformed || !this._meta.size
        ? EMPTY
        : (content as unknown as IDocument);
    this._changed.emit({ contentChange: true });
  };

  private _meta: Shared;
  private _raw: Shared;
  private _sections = {} as Record<Section, Shared>;
  private _metaPart: JsonObject = {};
  private _parts: Record<Section, JsonObject> = {
    nodes: {},
    comments: {},
    layout: {},
    components: {}
  };
  private _snapshot = EMPTY;
  private _malformed: IMalformed | null = null;
  private _isStale = false;
  private _gesture: string | undefined;
}

/** What an edit may do to the document. Values are copied in. */
export class Draft {
  constructor(
    private readonly meta: Shared,
    private readonly sections: Readonly<Record<Section, Shared>>
  ) {}

  /** Put a whole node, comment, place or definition, or take it away. */
  put(section: Section, id: string, value: unknown): void {
    const shared = this.sections[section];
    if (value === undefined) {
      shared.delete(id);
      return;
    }
    if (!this.meta.has(section)) {
      this.meta.set(section, new Y.Map());
    }
    const isDeep = DEEP.includes(section);
    merge(shared, { [id]: value as Json }, isDeep, false);
  }

  /** What is at a path now, with what this edit has done already. */
  get(path: Path): Json | undefined {
    const [root, ...keys] = path;
    const start: unknown = root === 'meta' ? this.meta : this.sections[root];
    const found = keys.reduce(
      (item, key) => (item instanceof Y.Map ? item.get(key) : undefined),
      start
    );
    return found === undefined ? undefined : plain(found);
  }

  /**
   * Set one property, however deep; `undefined` removes it, and with it the
   * objects around it that become empty, except the node itself.
   */
  set(path: Path, value: unknown): void {
    const [root, ...keys] = path;
    const start = root === 'meta' ? this.meta : this.sections[root];
    if (root !== 'meta' && !start.has(keys[0])) {
      return;
    }
    setIn(start, keys, value as Json | undefined, root === 'meta' ? 0 : 1);
  }
}

function setIn(
  shared: Shared,
  [key, ...rest]: string[],
  value: Json | undefined,
  kept: number
): void {
  if (rest.length === 0) {
    if (value === undefined) {
      shared.delete(key);
    } else {
      merge(shared, { [key]: value }, true, false);
    }
    return;
  }
  const found = shared.get(key);
  if (!(found instanceof Y.Map) && value === undefined) {
    return;
  }
  const inner: Shared = found instanceof Y.Map ? found : new Y.Map();
  if (inner !== found) {
    shared.set(key, inner);
  }
  setIn(inner, rest, value, kept - 1);
  if (value === undefined && inner.size === 0 && kept <= 0) {
    shared.delete(key);
  }
}

/** Make `shared` hold `content`, changing as little as possible. */
function merge(
  shared: Shared,
  content: JsonObject,
  isDeep: boolean,
  isWhole = true
): void {
  if (isWhole) {
    for (const key of [...shared.keys()]) {
      if (!Object.hasOwn(content, key)) {
        shared.delete(key);
      }
    }
  }
  for (const [key, item] of Object.entries(content)) {
    if (item === undefined) {
      continue;
    }
    const old = shared.get(key);
    if (isDeep && isObject(item)) {
      if (old instanceof Y.Map) {
        merge(old, item, true);
      } else {
        shared.set(key, sharedOf(item));
      }
    } else if (
      !shared.has(key) ||
      old instanceof Y.Map ||
      !JSONExt.deepEqual(old as Json, item)
    ) {
      shared.set(key, JSONExt.deepCopy(item));
    }
  }
}

function sharedOf(content: JsonObject): Shared {
  return new Y.Map(
    Object.entries(content)
      .filter(([, item]) => item !== undefined)
      .map(([key, item]) => [
        key,
        isObject(item) ? sharedOf(item) : JSONExt.deepCopy(item)
      ])
  );
}

function plain(shared: unknown): Json {
  if (shared instanceof Y.Map) {
    const value: JsonObject = {};
    shared.forEach((item, key) => {
      value[key] = plain(item);
    });
    return value;
  }
  return shared as Json;
}

/** Is it the document of `text`, in somebody's own way of writing? */
function isSame(written: string, text: string): boolean {
  const { document } = parse(written);
  return document !== undefined && dumps(document) === text;
}
