import type { Event } from '@jupyterlab/services';
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import { Poll } from '@lumino/polling';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type {
  IConvectApi,
  IRunEvent,
  IRunQuery,
  IRunSummary,
  ISweepSummary,
  ITrouble
} from '../api';
import { RUN_EVENT, SWEEP_EVENT } from '../api';
import type { Counts, IRunChange, IRunStore } from '../tokens';
import { Coalesced } from '../ui/coalesce';
import { Observable } from '../ui/observable';
import { isLive, LIVE } from '../ui/states';
import { WatchedRun } from './watched';

/** How many live runs the slow question asks for. */
const LIVE_LIMIT = 100;
/** How many runs are asked for by name at once; the server takes no more. */
const NAMED_LIMIT = 200;
/** How many runs are remembered that nobody may look at any more. */
const KEPT = 5000;
/** The longest page of a list. */
const PAGE_LIMIT = 1000;

/**
 * The one copy of every run that somebody looks at, over all runtimes.
 *
 * The server says which runs change; each change is asked for once, whatever is
 * open: a run that is watched as a whole, all others together, by name. What is
 * older than what is known is ignored. A slow question heals what was missed.
 */
export class RunStore extends Observable implements IRunStore {
  constructor(
    readonly api: IConvectApi,
    events: Event.IManager,
    standby: Poll.Standby = 'when-hidden'
  ) {
    super();
    this._stream = events.stream;
    this._stream.connect(this.onEvent, this);
    this._askNamed = new Coalesced(() => this.loadNamed(), 500, 1500);
    this._askSweeps = new Coalesced(() => this.loadSweeps(), 2000);
    this._poll = new Poll({
      name: 'jupyterlab-convect:runs',
      factory: () => Promise.all([this.loadLive(), this.loadHealth()]),
      frequency: { interval: 10000, backoff: true, max: 15000 },
      standby
    });
    this._poll.ticked.connect(this.onTick, this);
  }

  readonly began = Date.now();

  summary(id: string): IRunSummary | undefined {
    return this._runs.get(id);
  }

  isLive(id: string): boolean {
    const run = this._runs.get(id);
    return run !== undefined && isLive(run.state);
  }

  get live(): readonly IRunSummary[] {
    return (this._live ??= [...this._runs.values()]
      .filter(run => isLive(run.state))
      .sort((a, b) => (a.id < b.id ? 1 : -1)));
  }

  get liveCount(): number {
    return LIVE.reduce((sum, state) => sum + (this._counts[state] ?? 0), 0);
  }

  get counts(): Counts {
    return this._counts;
  }

  get sweeps(): readonly ISweepSummary[] | null {
    return this._sweeps;
  }

  get trouble(): unknown {
    return this._trouble;
  }

  get isUnreachable(): boolean {
    return this._trouble !== null;
  }

  get troubles(): readonly ITrouble[] {
    return this._troubles;
  }

  get runsChanged(): ISignal<this, readonly IRunChange[]> {
    return this._runsChanged;
  }

  get sweepsChanged(): ISignal<this, void> {
    return this._sweepsChanged;
  }

  get healing(): ISignal<this, void> {
    return this._healing;
  }

  watch(id: string, isLooking = true): WatchedRun {
    let watched = this._watched.get(id);
    if (!watched) {
      watched = new WatchedRun(this, id, () => this._watched.delete(id));
      this._watched.set(id, watched);
    }
    watched.hold(isLooking);
    return watched;
  }

  learn(id: string): void {
    if (!this._runs.has(id)) {
      this.ask(id, 0);
    }
  }

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

  refreshSweeps(): void {
    this._askSweeps.request();
  }

  refresh(): void {
    this.loadLive().catch(() => undefined);
  }

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

  shows(id: string, isVisible: () => boolean): IDisposable {
    const shown = { id, isVisible };
    this._shown.add(shown);
    return new DisposableDelegate(() => this._shown.delete(shown));
  }

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
      return;
    }
    watched?.hear(seq, !isLive(state));
    if (!watched?.isLookedAt && (!known || known.seq < seq)) {
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
      this._trouble = null;
      this.lookForEnded(page.runs, page.total);
      this.take(page.runs, page.counts);
      this.touch();
    } catch (error) {
      this._trouble = error;
      this.touch();
      throw error;
    }
  }

  /** Runs that are not among the live ones any more, where that can be known, have ended. */
  private lookForEnded(runs: readonly IRunSummary[], total: number): void {
    const found = new Set(runs.map(({ id }) => id));
    const oldest = runs.length < total ? runs[runs.length - 1].id : '';
    for (const { id } of this.live) {
      const isAsked = this._watched.get(id)?.isLookedAt;
      if (id > oldest && !found.has(id) && !isAsked) {
        this.ask(id, Infinity);
      }
    }
  }

  private async loadSweeps(): Promise<void> {
    try {
      this._sweeps = (await this.api.listSweeps({ limit: 1000 })).sweeps;
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
  private _trouble: unknown = null;
  private _troubles: ITrouble[] = [];
  private _watched = new Map<string, WatchedRun>();
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
