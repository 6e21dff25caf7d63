import { PathExt } from '@jupyterlab/coreutils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { Contents } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { UUID } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import { Signal } from '@lumino/signaling';

import type { IConvectApi, IDiscovery, IOffering } from '../api';
import { offeringOf } from '../settings/offering';
import type { IRunStore } from '../tokens';
import { isBad } from '../ui/states';
import { boxesOf } from './boxes';
import { Checker } from './checker';
import type { PipelineModel } from './documentmodel';
import { FileFacts, resolvePath } from './files';
import type { IBox, IEdge, IPoint } from './graph';
import { edgesOf, isGroup, membersOf } from './graph';
import type { IPipelineChange, PipelineDoc } from './model';
import type { IDocument } from './schema';
import { orderOf, reachable } from './order';
import { OutsideWatch } from './outside';
import { hasFacts } from './ports';
import { RunWatch } from './runwatch';
import { Store } from './store';
import type { INodeView, Unfold } from './views';
import { loudest, partsOf, ViewMaker } from './views';

export interface IViewport extends IPoint {
  zoom: number;
}

/** What the canvas can do for the rest of the editor. */
export interface ICanvas {
  /** A place on the screen as one in the document. */
  toDocument(client: IPoint): IPoint;
  /** The middle of what is seen. */
  center(): IPoint;
  fit(ids?: readonly string[]): void;
  zoom(step: 'in' | 'out' | 'reset'): void;
  /** Bring a node into view and give it the keyboard. */
  focus(id: string): void;
  /** Take the keyboard, without a node. */
  focusPane(): void;
  /** Bring a node into view. */
  reveal(id: string): void;
  /** Turn a note into a text field. */
  editNote(id: string): void;
}

export interface ISessionState {
  /** Ids of nodes, groups and notes. */
  selection: ReadonlySet<string>;
  selectedEdges: ReadonlySet<string>;
  panel: 'properties' | 'problems' | null;
  /** The property to show next, and a number that tells one wish from another. */
  jump: { path: readonly (string | number)[]; turn: number } | null;
  /** Graph components that are shown with what is in them. */
  unfolded: ReadonlySet<string>;
  /** The node from which a connection is being made by keyboard. */
  connecting: string | null;
  viewport: IViewport | null;
  isSnapping: boolean;
  isMinimapOn: boolean;
  /** Somebody looks for a node by its name. */
  isFinding: boolean;
  /** The file on the disk is not the one that was read, and neither is this. */
  isChangedOutside: boolean;
  /** Spoken by screen readers. */
  announcement: string;
}

export interface ISessionOptions {
  api: IConvectApi;
  runs: IRunStore;
  docManager: IDocumentManager;
  contents: Contents.IManager;
  context: DocumentRegistry.IContext<PipelineModel>;
  trans: TranslationBundle;
  /** Images to choose from, as the settings have them now. */
  images: () => readonly string[];
  /** Show what a step of the shown run did. */
  openStep: (run: string, step: string) => void;
  /** Offer what can be added at a place on the screen. */
  offerNodes: (client: IPoint, args: IAddition) => void;
}

/** Where something new goes, and after which node it runs. */
export interface IAddition {
  x?: number;
  y?: number;
  after?: string;
}

/**
 * All that an open editor knows, apart from the document itself.
 *
 * Components read it and call its methods; they keep no state of their own
 * that should outlive them.
 */
export class Session implements IDisposable {
  constructor(options: ISessionOptions) {
    this.api = options.api;
    this.contents = options.contents;
    this.context = options.context;
    this.trans = options.trans;
    this.docManager = options.docManager;
    this._images = options.images;
    this._openStep = options.openStep;
    this.offerNodes = options.offerNodes;
    this.doc = options.context.model.sharedModel;
    this.files = new FileFacts(this.api, this.contents, path =>
      this.resolve(path)
    );
    this.checker = new Checker(this.api, () =>
      this.doc.malformed
        ? null
        : { document: this.document, path: this.context.localPath }
    );
    this._outside = new OutsideWatch(this);
    this.runs = new RunWatch(
      options.runs,
      () => this.context.localPath,
      () => this.isShown
    );
    this.doc.changed.connect(this.onChange, this);
    this.files.store.changed.connect(this.onFiles, this);
    this.context.pathChanged.connect(this.onPathChanged, this);
    this.context.fileChanged.connect(this.followRights, this);
    void this.context.ready.then(() => this.followRights());
    this.onChange(this.doc, { contentChange: true });
    void offeringOf(this.api).then(offering => (this.offering = offering));
  }

  /** Marks the elements of this editor among those of others. */
  readonly id = UUID.uuid4();
  readonly api: IConvectApi;
  readonly docManager: IDocumentManager;
  readonly contents: Contents.IManager;
  readonly context: DocumentRegistry.IContext<PipelineModel>;
  readonly trans: TranslationBundle;
  readonly doc: PipelineDoc;
  readonly offerNodes: ISessionOptions['offerNodes'];
  readonly files: FileFacts;
  readonly checker: Checker;
  readonly runs: RunWatch;
  readonly state = new Store<ISessionState>({
    selection: new Set(),
    selectedEdges: new Set(),
    panel: null,
    jump: null,
    unfolded: new Set(),
    connecting: null,
    viewport: null,
    isSnapping: true,
    isMinimapOn: true,
    isFinding: false,
    isChangedOutside: false,
    announcement: ''
  });

  /** Which parts of the form are open, once somebody has said so. */
  readonly openSections = new Map<string, boolean>();
  /** Images to choose from. */
  get images(): readonly string[] {
    return this._images();
  }
  /** What an administrator offers, once that is known. */
  offering: IOffering | null = null;

  /** The node on which the context menu was opened last. */
  pointed: string | null = null;

  /** The editor is in front; what nobody sees asks the server for nothing. */
  get isShown(): boolean {
    return this._isShown;
  }

  set isShown(value: boolean) {
    this._isShown = value;
    this.runs.setShown(value);
    if (value) {
      this._outside.request();
    }
  }

  /** The canvas, while it is on the page. */
  canvas: ICanvas | null = null;

  /** What tells the parts of a graph component; it comes with the canvas. */
  unfold: Unfold | null = null;

  get document(): IDocument {
    return this.doc.snapshot;
  }

  get isReadOnly(): boolean {
    return this.context.model.readOnly;
  }

  /** The folder that paths of the document are relative to. */
  get folder(): string {
    return PathExt.dirname(this.context.localPath);
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    this.doc.changed.disconnect(this.onChange, this);
    this.context.pathChanged.disconnect(this.onPathChanged, this);
    this.context.fileChanged.disconnect(this.followRights, this);
    this._outside.dispose();
    this.files.dispose();
    this.checker.dispose();
    this.state.dispose();
    this.runs.dispose();
    Signal.clearData(this);
  }

  /** A path of the document as one of the server; null when it leads out. */
  resolve(path: string): string | null {
    return resolvePath(this.folder, path);
  }

  /** A path of the server as the document would write it. */
  relative(path: string): string {
    return PathExt.relative(this.folder, path) || PathExt.basename(path);
  }

  get edges(): readonly IEdge[] {
    if (this._edgesOf !== this.document.nodes) {
      this._edgesOf = this.document.nodes;
      this._edges = edgesOf(this.document);
    }
    return this._edges;
  }

  /** What begins or ends after a node begins, itself included; see `orderOf`. */
  after(id: string): ReadonlySet<string> {
    return reachable(orderOf(this.document, this.edges), [id], 'down');
  }

  get views(): ReadonlyMap<string, INodeView> {
    const key = [
      this.document,
      this.files.store.value.found,
      this.checker.store.value.problems,
      this.runs.store.value.steps,
      this.runs.store.value.run?.groups,
      this.state.value.unfolded,
      this.unfold
    ];
    if (!key.every((item, index) => item === this._viewsKey[index])) {
      this._viewsKey = key;
      this._views = this._maker.make(this.document, this.edges, {
        found: this.files.store.value.found,
        problems: this.checker.store.value.problems,
        steps: this.runs.store.value.steps,
        groups: this.runs.store.value.run?.groups,
        unfolded: this.state.value.unfolded,
        unfold: this.unfold
      });
    }
    return this._views;
  }

  get boxes(): Map<string, IBox> {
    return boxesOf(this.document, this.views);
  }

  select(ids: Iterable<string>, edges: Iterable<string> = []): void {
    this.state.update({
      selection: new Set(ids),
      selectedEdges: new Set(edges)
    });
  }

  announce(text: string): void {
    // The same words twice are spoken twice only if the text differs.
    const last = this.state.value.announcement;
    this.state.update({ announcement: text === last ? `${text}\u00a0` : text });
  }

  /** Show the properties of a node (or, with null, of the pipeline); of all that are selected with it. */
  showProperties(
    id: string | null,
    path: readonly (string | number)[] = []
  ): void {
    const { selection } = this.state.value;
    if (path.length || id === null || !selection.has(id)) {
      this.select(id === null ? [] : [id]);
    }
    this.state.update({
      panel: 'properties',
      jump: { path, turn: (this.state.value.jump?.turn ?? 0) + 1 }
    });
  }

  /** Words that come from the format's schema, in the user's language. */
  words(text: string): string {
    // The catalogue of translations takes them from the schema.
    // eslint-disable-next-line jupyter/no-dynamic-translation
    return this.trans.__(text);
  }

  /** What the file of a node tells about itself, if that is known. */
  factsOf(id: string): IDiscovery | null {
    const node = this.document.nodes[id];
    const found =
      node && 'path' in node
        ? this.files.store.value.found.get(node.path)
        : undefined;
    return hasFacts(found) ? found : null;
  }

  /** The folder, on the server, that a node's globs are relative to. */
  folderOf(id: string | null): string {
    const node = id === null ? undefined : this.document.nodes[id];
    const path = node && 'path' in node ? this.resolve(node.path) : null;
    return path === null ? this.folder : PathExt.dirname(path);
  }

  openAsText(): void {
    this.docManager.openOrReveal(this.context.path, 'Editor');
  }

  /** Take over what is on the disk. */
  async reload(): Promise<void> {
    await this.context.revert();
    this.state.update({ isChangedOutside: false });
    this.announce(this.trans.__('The file was read again.'));
  }

  /** Open the file of a node, or offer to find or make one that is missing. */
  async openFile(id: string): Promise<void> {
    const node = this.document.nodes[id];
    if (!node || !('path' in node)) {
      return;
    }
    const path = this.resolve(node.path);
    const found = this.files.store.value.found.get(node.path);
    if (path === null || (found && 'error' in found && found.isMissing)) {
      const { mendMissingFile } = await import('./missing');
      await mendMissingFile(this, id);
    } else {
      this.docManager.openOrReveal(path);
    }
  }

  /**
   * Show what a step did; of several that are one node, the one to look at first: one that
   * failed, or else the group or loop that they are.
   */
  openStep(id: string): void {
    const { run, steps } = this.runs.store.value;
    if (run !== null) {
      const node = this.document.nodes[id];
      const ids = node && isGroup(node) ? membersOf(this.document, id) : [id];
      const step = loudest(
        ids.flatMap(part => Object.values(partsOf(part, steps ?? {})))
      );
      const isGroupOfRun = run.groups !== undefined && id in run.groups;
      const isWhole = isGroupOfRun && !(step && isBad(step.state));
      this._openStep(run.id, isWhole ? id : (step?.id ?? id));
    }
  }

  private onChange(_: PipelineDoc, change: IPipelineChange): void {
    if (!change.contentChange) {
      return;
    }
    const { nodes } = this.document;
    this.files.want(
      Object.values(nodes)
        .map(node => ('path' in node ? node.path : ''))
        .filter(path => typeof path === 'string' && path !== '')
    );
    if (this.hasNewMeaning()) {
      this.checker.request();
    }
    this.dropLostSelection();
  }

  /** Something other than where things are has changed since it was checked last. */
  private hasNewMeaning(): boolean {
    const [before, now] = [this._checked, this.document];
    this._checked = now;
    return [...Object.keys(before), ...Object.keys(now)].some(
      key =>
        key !== 'layout' &&
        key !== 'comments' &&
        before[key as keyof IDocument] !== now[key as keyof IDocument]
    );
  }

  /** A node that is gone (undone, or removed by somebody else) is not selected. */
  private dropLostSelection(): void {
    const { selection } = this.state.value;
    const { nodes, comments = {} } = this.document;
    const rest = [...selection].filter(id => id in nodes || id in comments);
    if (rest.length !== selection.size) {
      this.state.update({ selection: new Set(rest) });
    }
  }

  private onFiles(): void {
    // What a file declares decides about parameters.
    this.checker.request();
  }

  /** JupyterLab knows whether the file can be written, and leaves it to the model to heed it. */
  private followRights(): void {
    const { contentsModel, model } = this.context;
    if (!this._isDisposed) {
      model.readOnly = contentsModel?.writable === false;
    }
  }

  private onPathChanged(): void {
    this.files.request();
    this.checker.request();
    this.runs.refresh();
  }

  private _edges: readonly IEdge[] = [];
  private _edgesOf: object | null = null;
  private _images: ISessionOptions['images'];
  private _isDisposed = false;
  private _isShown = true;
  private _checked: Partial<IDocument> = {};
  private _outside: OutsideWatch;
  private _openStep: ISessionOptions['openStep'];
  private _maker = new ViewMaker();
  private _views: ReadonlyMap<string, INodeView> = new Map();
  private _viewsKey: readonly unknown[] = [];
}
