import type {
  IConvectApi,
  IAttemptKey,
  IGroup,
  IItemsQuery,
  ILoopItem,
  IPlan,
  IRunView,
  IStep
} from '../../api';
import type { IRunChange, IRunStore, IWatchedRun } from '../../tokens';
import { Coalesced } from '../../ui/coalesce';
import { PageModel } from '../../ui/observable';
import { isBad, isLive } from '../../ui/states';
import { EventsModel } from './events';
import { LogModel } from './log';
import { LoopModel, tellingStep } from './loop';
import type { IOpenItem } from './outline';
import { loopOf, placeOf } from './outline';
import { ReplicasModel } from './ranks';

export type Tab =
  'replicas' | 'log' | 'cells' | 'values' | 'metrics' | 'files' | 'details';

/** What of a run is looked at. */
export class RunModel extends PageModel {
  constructor(
    readonly runs: IRunStore,
    readonly id: string
  ) {
    super();
    this._run = runs.watch(id, false);
    this._run.changed.connect(this.onRun, this);
    this._items = () => this.itemsInSight;
    runs.runsChanged.connect(this.onRuns, this);
    runs.learn(id);
  }

  get api(): IConvectApi {
    return this.runs.api;
  }

  /** Null until the server has answered. */
  get view(): IRunView | null {
    return this._run.view;
  }

  get name(): string | null {
    return (this.view ?? this.runs.summary(this.id))?.name ?? null;
  }

  get error(): unknown {
    return this._run.error;
  }

  get isDeleted(): boolean {
    return this._run.isDeleted;
  }

  /** The step that is looked at; null while it is a group. */
  get step(): IStep | null {
    if (!this.view || this.group) {
      return null;
    }
    const { steps } = this.view;
    const id = this._step ?? '';
    return (
      steps[id] ??
      this._open?.item.steps[id] ??
      steps[mostTelling(this.view)] ??
      null
    );
  }

  /** The group or loop that is looked at, if it is one. */
  get group(): IGroup | null {
    return this.view?.groups?.[this._step ?? ''] ?? null;
  }

  /** The items of the loop that is looked at. */
  get loop(): LoopModel | null {
    const { group } = this;
    if (group === null || !isLoopOf(this.view!.plan, group)) {
      return null;
    }
    // It is there still, with what was chosen in it, when one of its items was looked at.
    if (this._loop?.group.id !== group.id) {
      this._loop?.dispose();
      this._loop = new LoopModel(this.api, this.id, group);
    }
    return this._loop;
  }

  /** The item of a loop that the step is in, once it is known. */
  get openItem(): IOpenItem | null {
    const place = this.itemPlace;
    const open = this._open;
    return place && open?.loop === place.loop && open.item.index === place.index
      ? open
      : null;
  }

  /** Look at an item of a loop: at the one of its steps that tells most. */
  lookAtItem(loop: string, item: ILoopItem): void {
    this._open = { loop, item };
    const step = tellingStep(item);
    if (step) {
      this._isHandedOver = true;
      this.look({ step: step.id });
    }
  }

  /** Look at all items of the loop that the step is in. */
  lookAtItems(): void {
    const { openItem } = this;
    if (openItem) {
      this._isHandedOver = true;
      this.look({ step: openItem.loop });
    }
  }

  /** Whether what is drawn now takes the place of what had the keyboard; asked once. */
  takeKeyboard(): boolean {
    const isHandedOver = this._isHandedOver;
    this._isHandedOver = false;
    return isHandedOver;
  }

  get attempt(): number {
    return this._attempt ?? Math.max(1, this.step?.attempts.length ?? 1);
  }

  /** Where the results of what is looked at lie, null while there are none. */
  get key(): IAttemptKey | null {
    const step = this.step;
    if (!step || (step.attempts.length === 0 && !step.source)) {
      return null;
    }
    return { run: this.id, step: step.id, attempt: this.attempt };
  }

  get tab(): Tab | null {
    return this._tab;
  }

  /** The log of what is looked at, as far as it was read. */
  get log(): LogModel | null {
    return this.tail('log', key => new LogModel(this.api, key));
  }

  /** What the step that is looked at did, as far as it was read. */
  get events(): EventsModel | null {
    return this.tail('events', key => new EventsModel(this.api, key));
  }

  /** The processes of the distributed step that is looked at, as far as they are known. */
  get replicas(): ReplicasModel | null {
    return this.tail('replicas', key => new ReplicasModel(this.api, key));
  }

  /** Read the log from its beginning, however long it is. */
  readWholeLog(): void {
    const key = this.key;
    if (key) {
      this._tails.log?.dispose();
      this._tails.log = new LogModel(this.api, key, true);
      this.touch();
    }
  }

  look(at: { step?: string; attempt?: number; tab?: Tab }): void {
    if (at.step !== undefined) {
      this._step = this.view ? whatToShow(this.view, at.step) : at.step;
      this._attempt = undefined;
      this._item.request();
      if (this.group) {
        this.loop?.update(this.group);
      }
    }
    this._attempt = at.attempt ?? this._attempt;
    this._tab = at.tab ?? this._tab;
    this.touch();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._run.changed.disconnect(this.onRun, this);
      this.runs.runsChanged.disconnect(this.onRuns, this);
      if (this._run.items === this._items) {
        this._run.items = null;
      }
      this._run.release(this.isShown);
      Object.values(this._tails).forEach(tail => tail?.dispose());
      this._loop?.dispose();
      this._item.dispose();
      super.dispose();
    }
  }

  protected override onShown(isShown: boolean): void {
    if (isShown) {
      this._run.items = this._items;
    } else if (this._run.items === this._items) {
      this._run.items = null;
    }
    this._run.look(isShown);
  }

  private onRun(): void {
    const { group, itemPlace: place } = this;
    const items = this.view?.loop;
    if (group && group.id === this._loop?.group.id) {
      this._loop.update(group, items?.id === group.id ? items : null);
    }
    const [item] = items?.page ?? [];
    if (place && item?.index === place.index && items?.id === place.loop) {
      this._open = { loop: place.loop, item };
    } else {
      this._item.request();
    }
    this.touch();
  }

  /** What of a loop is looked at, and comes with each change of the run. */
  private get itemsInSight(): IItemsQuery | null {
    const place = this.itemPlace;
    if (!this.isShown || (!place && !this.loop)) {
      return null;
    }
    return place
      ? { loop: place.loop, offset: place.index, limit: 1 }
      : this.loop!.query;
  }

  private get itemPlace(): { loop: string; index: number } | null {
    const { step, view, _step: id } = this;
    if (!view) {
      return null;
    }
    // A run shows only some of the steps of a long loop.
    const isUnknown = id !== undefined && step?.id !== id && !this.group;
    return (
      (isUnknown ? placeOf(view, id) : null) ??
      (step ? loopOf(view.plan, step) : null)
    );
  }

  /** Learn of the item that the step is in, again while it goes on. */
  private async readItem(): Promise<void> {
    const place = this.itemPlace;
    const known = this.openItem;
    if (!place || (known && !isLive(known.item.state))) {
      return;
    }
    const { loop, index } = place;
    const found = await this.api.items(
      { run: this.id, loop },
      {
        offset: index,
        limit: 1
      }
    );
    const [item] = found.page;
    if (item && !this.isDisposed) {
      this._open = { loop, item };
      this.touch();
    }
  }

  private onRuns(_: IRunStore, changes: readonly IRunChange[]): void {
    if (!this.isShown && changes.some(({ id }) => id === this.id)) {
      this.touch();
    }
  }

  /** One of what is looked at now; that of another attempt is not needed any more. */
  private tail<K extends keyof ITails>(
    kind: K,
    make: (key: IAttemptKey) => NonNullable<ITails[K]>
  ): ITails[K] {
    const { key } = this;
    const known = this._tails[kind];
    if (!key || (known && isSame(known.key, key))) {
      return key ? known : null;
    }
    known?.dispose();
    return (this._tails[kind] = make(key));
  }

  private _attempt: number | undefined;
  private readonly _items: () => IItemsQuery | null;
  private _isHandedOver = false;
  private _item = new Coalesced(() => this.readItem(), 1000);
  private _loop: LoopModel | null = null;
  private _open: IOpenItem | null = null;
  private _run: IWatchedRun;
  private _step: string | undefined;
  private _tab: Tab | null = null;
  private _tails: ITails = { log: null, events: null, replicas: null };
}

interface ITails {
  log: LogModel | null;
  events: EventsModel | null;
  replicas: ReplicasModel | null;
}

function isSame(a: IAttemptKey, b: IAttemptKey): boolean {
  return a.run === b.run && a.step === b.step && a.attempt === b.attempt;
}

/** The step to show first: one that failed, one that runs, the last one that began. */
export function mostTelling(view: IRunView): string {
  const steps = Object.values(view.steps);
  const begun = [...steps].sort((a, b) => (b.started ?? 0) - (a.started ?? 0));
  const found =
    steps.find(step => isBad(step.state)) ??
    steps.find(step => step.state === 'running') ??
    begun[0];
  return found?.id ?? '';
}

/**
 * What to show for the id of a step, a group, or a node of the plan that is in a loop: of
 * that, the step that failed, else the loop.
 */
export function whatToShow(view: IRunView, id: string): string {
  const { steps, groups = {} } = view;
  if (id in steps || id in groups) {
    return id;
  }
  const parts = Object.values(steps).filter(({ node }) => node === id);
  const bad = parts.find(({ state }) => isBad(state));
  const place = parts[0] ? loopOf(view.plan, parts[0]) : null;
  return bad?.id ?? place?.loop ?? id;
}

function isLoopOf(plan: IPlan, { id, node, item }: IGroup): boolean {
  const unit =
    plan.groups?.find(group => group.id === node) ??
    plan.steps.find(step => step.id === node);
  // An item of a loop over a group ends with its number.
  const isItem = item.length > 0 && id.endsWith(`.${item[item.length - 1]}`);
  return !!unit?.for_each && !isItem;
}
