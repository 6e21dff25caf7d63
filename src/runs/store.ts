import type { Event } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type {
  ConvectApi,
  IRunEvent,
  IRunQuery,
  IRunSummary,
  IRunView,
  IStep,
  ISweepSummary,
  ITrouble,
  State
} from '../api';
import { ConvectError, RUN_EVENT, SWEEP_EVENT } from '../api';
import { Coalesced } from '../ui/coalesce';
import { Observable } from '../ui/observable';
import { isLive, LIVE } from '../ui/states';

/** How many live runs the slow question asks for. */
const LIVE_LIMIT = 100;
/** How many runs are asked for by name at once; the server takes no more. */
const NAMED_LIMIT = 200;
/** How many runs are remembered that nobody may look at any more. */
const KEPT = 5000;
/** The longest page of a list. */
const PAGE_LIMIT = 1000;

/** What became of a run: null where it was not known before, or is gone now. */
export interface IRunChange {
  id: string;
  before: IRunSummary | null;
  after: IRunSummary | null;
}

export type Counts = Partial<Record<State, number>>;

/**
 * The one copy of every run that somebody looks at, over all runtimes.
 *
 * The server says which runs change; each change is asked for once, whatever is
 * open: a run that is watched as a whole, all others together, by name. What is
 * older than what is known is ignored. A slow question heals what was missed.
 */
export class RunStore extends Observable {
  constructor(
    readonly api: ConvectApi,
    events: Event.IManager,
    standby: Poll.Standby = 'when-hidden'
  ) {
    super();
    this._stream = events.stream;
    this._stream.connect(this.onEvent, this);
    this._askNamed = new Coalesced(() => this.loadNamed(), 500);
    this._askSweeps = new Coalesced(() => this.loadSweeps(), 2000);
    this._poll = new Poll({
      name: 'jupyterlab-convect:runs',
      factory: () => Promise.all([this.loadLive(), this.loadHealth()]),
      frequency: { interval: 10000, backoff: true, max: 15000 },
      standby
    });
    this._poll.ticked.connect(this.onTick, this);
  }

  /** When this page began to listen, by the clock of the browser, in milliseconds. */
  readonly began = Date.now();

  /** What is known of a run. */
  summary(id: string): IRunSummary | undefined {
    return this._runs.get(id);
  }

  isLive(id: string): boolean {
    const run = this._runs.get(id);
    return run !== undefined && isLive(run.state);
  }

  /** Runs that have not ended, the newest first; when there are very many, not all of them. */
  get live(): readonly IRunSummary[] {
    return (this._live ??= [...this._runs.values()]
      .filter(run => isLive(run.state))
      .sort((a, b) => (a.id < b.id ? 1 : -1)));
  }

  get liveCount(): number {
    return LIVE.reduce((sum, state) => sum + (this._counts[state] ?? 0), 0);
  }

  /** How many runs there are of each state, those of sweeps too. */
  get counts(): Counts {
    return this._counts;
  }

  /** The newest first; null until somebody has asked for them. */
  get sweeps(): readonly ISweepSummary[] | null {
    return this._sweeps;
  }

  /** The server did not answer when it was last asked. */
  get isUnreachable(): boolean {
    return this._isUnreachable;
  }

  /** What of the server does not work now. */
  get troubles(): readonly ITrouble[] {
    return this._troubles;
  }

  /** More is known of some runs, or they are gone. */
  get runsChanged(): ISignal<this, readonly IRunChange[]> {
    return this._runsChanged;
  }

  /** More is known of the sweeps. */
  get sweepsChanged(): ISignal<this, void> {
    return this._sweepsChanged;
  }

  /** Time to ask again for everything that is shown, lest an event was missed. */
  get healing(): ISignal<this, void> {
    return this._healing;
  }

  /** Keep a run up to date until what is returned is released, as often as it was asked for. */
  watch(id: string): WatchedRun {
    let watched = this._watched.get(id);
    if (!watched) {
      watched = new WatchedRun(this, id, () => this._watched.delete(id));
      this._watched.set(id, watched);
    }
    watched.hold();
    return watched;
  }

  /** Take over what somebody was told of runs, with the counts of all runs if they came with it. */
  take(runs: readonly IRunSummary[], counts?: Counts): void {
    const changes: IRunChange[] = [];
    for (const after of runs) {
      const before = this._runs.get(after.id) ?? null;
      if (!before || isNewer(before, after)) {
        this._runs.set(after.id, after);
        changes.push({ id: after.id, before, after });
      }
    }
    this._counts = counts ?? counted(this._counts, changes);
    this.tell(changes);
  }

  /** Ask for the list of sweeps. */
  refreshSweeps(): void {
    this._askSweeps.request();
  }

  /** Ask for what is going on now. */
  refresh(): void {
    this.loadLive().catch(() => undefined);
  }

  /** All runs that a query finds, however many they are. */
  async all(query: IRunQuery): Promise<IRunSummary[]> {
    const found: IRunSummary[] = [];
    for (;;) {
      const page = await this.api.listRuns({
        ...query,
        limit: PAGE_LIMIT,
        offset: found.length
      });
      found.push(...page.runs);
      if (page.runs.length < PAGE_LIMIT) {
        return found;
      }
    }
  }

  /** Stop everything that goes on; a sweep as a whole, so that it makes no more runs. */
  async stopAll(): Promise<void> {
    const runs = await this.all({ state: [...LIVE] });
    const sweeps = new Set(runs.flatMap(({ sweep }) => sweep ?? []));
    for (const sweep of sweeps) {
      await this.api.stopSweep(sweep);
    }
    for (const run of runs.filter(({ sweep }) => !sweep)) {
      await this.api.stopRun(run.id);
    }
  }

  /** Say that a run, or a sweep, is shown somewhere while `isVisible` says so. */
  shows(id: string, isVisible: () => boolean): IDisposable {
    const shown = { id, isVisible };
    this._shown.add(shown);
    return new DisposableDelegate(() => this._shown.delete(shown));
  }

  /** Somebody who looks at the page sees this run, or sweep. */
  isOnScreen(id: string): boolean {
    return [...this._shown].some(each => each.id === id && each.isVisible());
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this._stream.disconnect(this.onEvent, this);
    this._poll.dispose();
    this._askNamed.dispose();
    this._askSweeps.dispose();
    this._watched.forEach(watched => watched.dispose());
    super.dispose();
  }

  private onEvent(_: Event.IManager, event: Event.Emission): void {
    if (event.schema_id === RUN_EVENT) {
      this.onRun(event as unknown as IRunEvent);
    } else if (event.schema_id === SWEEP_EVENT) {
      this._askSweeps.request();
    }
  }

  private onRun({ run, seq, state }: IRunEvent): void {
    const known = this._runs.get(run);
    const watched = this._watched.get(run);
    if (state === 'deleted') {
      this.forget([run]);
    } else if (watched) {
      watched.hear(seq);
    } else if (!known || known.seq < seq) {
      this.ask(run, seq);
    }
  }

  private ask(run: string, seq: number): void {
    this._stale.set(run, seq);
    this._askNamed.request();
  }

  private onTick(_: IDisposable, state: { phase: string }): void {
    if (state.phase === 'resolved') {
      this._healing.emit();
    }
  }

  /** Ask for all runs that have changed and that nobody watches as a whole. */
  private async loadNamed(): Promise<void> {
    const stale = [...this._stale].slice(0, NAMED_LIMIT);
    stale.forEach(([each]) => this._stale.delete(each));
    const id = stale
      .filter(([each, seq]) => (this._runs.get(each)?.seq ?? -1) < seq)
      .map(([each]) => each);
    try {
      const page = await this.api.listRuns({ id });
      this.take(page.runs, page.counts);
      const found = new Set(page.runs.map(run => run.id));
      this.forget(id.filter(each => !found.has(each)));
    } catch {
      // What goes on is asked for again by the slow question.
    }
    if (this._stale.size > 0) {
      this._askNamed.request();
    }
  }

  private async loadLive(): Promise<void> {
    try {
      const page = await this.api.listRuns({
        state: [...LIVE],
        limit: LIVE_LIMIT
      });
      this._isUnreachable = false;
      this.lookForEnded(page.runs, page.total);
      this.take(page.runs, page.counts);
      this.touch();
    } catch (error) {
      if (!this._isUnreachable) {
        this._isUnreachable = true;
        this.touch();
      }
      throw error;
    }
  }

  /** Runs that are not among the live ones any more, where that can be known, have ended. */
  private lookForEnded(runs: readonly IRunSummary[], total: number): void {
    const found = new Set(runs.map(({ id }) => id));
    const oldest = runs.length < total ? runs[runs.length - 1].id : '';
    for (const { id } of this.live) {
      if (id > oldest && !found.has(id) && !this._watched.has(id)) {
        this.ask(id, Infinity);
      }
    }
  }

  private async loadSweeps(): Promise<void> {
    try {
      this._sweeps = await this.api.sweeps();
      this._sweepsChanged.emit();
      this.touch();
    } catch {
      // The slow question says that the server does not answer.
    }
  }

  /** What cannot be asked stays as it was: that the server is away is said already. */
  private async loadHealth(): Promise<void> {
    const about = await this.api.about().catch(() => null);
    if (about && (about.health.length || this._troubles.length)) {
      this._troubles = about.health;
      this.touch();
    }
  }

  private forget(ids: readonly string[]): void {
    const changes: IRunChange[] = [];
    for (const id of ids) {
      const before = this._runs.get(id) ?? null;
      this._runs.delete(id);
      this._stale.delete(id);
      this._watched.get(id)?.lose();
      changes.push({ id, before, after: null });
    }
    this._counts = counted(this._counts, changes);
    this.tell(changes);
  }

  private tell(changes: readonly IRunChange[]): void {
    if (changes.length === 0 || this.isDisposed) {
      return;
    }
    this._live = null;
    this.dropOldest();
    this._runsChanged.emit(changes);
    this.touch();
  }

  /** In large steps, since each looks at all that is left. */
  private dropOldest(): void {
    if (this._runs.size > 2 * KEPT) {
      const ended = [...this._runs.values()].filter(run => !isLive(run.state));
      const surplus = ended.slice(0, this._runs.size - KEPT);
      surplus.forEach(({ id }) => this._runs.delete(id));
    }
  }

  private _askNamed: Coalesced;
  private _askSweeps: Coalesced;
  private _counts: Counts = {};
  private _healing = new Signal<this, void>(this);
  private _isUnreachable = false;
  private _live: IRunSummary[] | null = null;
  private _poll: Poll;
  private _runs = new Map<string, IRunSummary>();
  private _runsChanged = new Signal<this, readonly IRunChange[]>(this);
  private _shown = new Set<{ id: string; isVisible: () => boolean }>();
  /** Runs to ask for, and how often each has changed at least. */
  private _stale = new Map<string, number>();
  private _stream: Event.Stream;
  private _sweeps: ISweepSummary[] | null = null;
  private _sweepsChanged = new Signal<this, void>(this);
  private _troubles: ITrouble[] = [];
  private _watched = new Map<string, WatchedRun>();
}

/** One run with its plan and its steps, for all who look at it. */
export class WatchedRun extends Observable {
  constructor(
    private readonly store: RunStore,
    readonly id: string,
    private readonly onLeft: () => void
  ) {
    super();
    this._load = new Coalesced(() => this.load(), 250);
    store.healing.connect(this.onHealing, this);
    this._load.request();
  }

  /** Null until the server has answered. */
  get view(): IRunView | null {
    return this._view;
  }

  get error(): unknown {
    return this._error;
  }

  get isDeleted(): boolean {
    return this._isDeleted;
  }

  hold(): void {
    this._holders += 1;
  }

  /** Call it once for each `watch`. */
  release(): void {
    this._holders -= 1;
    if (this._holders === 0) {
      this.onLeft();
      this.dispose();
    }
  }

  /** The run has changed as often as this. */
  hear(seq: number): void {
    this._heard = Math.max(this._heard, seq);
    this._load.request();
  }

  lose(): void {
    this._isDeleted = true;
    this.touch();
  }

  override dispose(): void {
    this.store.healing.disconnect(this.onHealing, this);
    this._load.dispose();
    super.dispose();
  }

  private onHealing(): void {
    if (!this._view || isLive(this._view.state) || this._error) {
      this.hear(Infinity);
    }
  }

  private async load(): Promise<void> {
    const before = this._view;
    if (before && before.seq >= this._heard && !this._error) {
      return;
    }
    this._heard = 0;
    try {
      const view = await this.store.api.run(this.id);
      this._error = null;
      this._isDeleted = false;
      if (!before || view.seq >= before.seq) {
        this._view = before ? unchangedKept(before, view) : view;
        this.store.take([view]);
      }
    } catch (error) {
      this._error = error;
      this._isDeleted ||= error instanceof ConvectError && error.isMissing;
    }
    this.touch();
  }

  private _error: unknown = null;
  private _heard = 0;
  private _holders = 0;
  private _isDeleted = false;
  private _load: Coalesced;
  private _view: IRunView | null = null;
}

/** The counts after changes that came without them: those of runs that were known, or go on. */
function counted(counts: Counts, changes: readonly IRunChange[]): Counts {
  const result = { ...counts };
  const add = (run: IRunSummary, by: number) => {
    result[run.state] = Math.max(0, (result[run.state] ?? 0) + by);
  };
  for (const { before, after } of changes) {
    if (before) {
      add(before, -1);
    }
    if (after && (before || isLive(after.state))) {
      add(after, 1);
    }
  }
  return result;
}

function isNewer(before: IRunSummary, after: IRunSummary): boolean {
  return (
    after.seq > before.seq ||
    (after.seq === before.seq &&
      (after.state !== before.state ||
        after.reason !== before.reason ||
        after.progress !== before.progress))
  );
}

/** What did not change stays the same object, so that nothing of it is drawn again. */
function unchangedKept(before: IRunView, after: IRunView): IRunView {
  const isSamePlan = before.plan.steps.length === after.plan.steps.length;
  const steps = Object.entries(after.steps).map(
    ([id, step]): [string, IStep] =>
      JSON.stringify(before.steps[id]) === JSON.stringify(step)
        ? [id, before.steps[id]]
        : [id, step]
  );
  return {
    ...after,
    plan: isSamePlan ? before.plan : after.plan,
    steps: Object.fromEntries(steps)
  };
}
