import type { IDisposable } from '@lumino/disposable';

import type { IRunSummary, IRunView, IStep } from '../api';
import { FilteredRuns } from '../runs/filtered';
import { isLive } from '../ui/states';
import type { IRunStore, IWatchedRun } from '../tokens';
import { Store } from './store';

/** How many more of the earlier runs are listed at a time. */
const PAGE = 30;

export interface IWatched {
  /** The runs of this file, the newest first. */
  runs: readonly IRunSummary[];
  /** There are older ones that are not listed yet. */
  hasMore: boolean;
  /** The one that is shown on the canvas. */
  run: IRunView | null;
  steps: Readonly<Record<string, IStep>> | null;
}

/**
 * Follows the runs of one file, and shows one of them: the one that was chosen, else
 * whichever goes on. Who chose an earlier one, or none, is left in peace.
 */
export class RunWatch implements IDisposable {
  constructor(
    private readonly runs: IRunStore,
    private readonly path: () => string,
    private readonly isVisible: () => boolean = () => true
  ) {
    this._list = new FilteredRuns(runs, { path: path() });
    this._list.changed.connect(this.onList, this);
  }

  readonly store = new Store<IWatched>({
    runs: [],
    hasMore: false,
    run: null,
    steps: null
  });

  get isDisposed(): boolean {
    return this._list.isDisposed;
  }

  dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.leave();
    this._list.dispose();
    this.store.dispose();
  }

  /** Show a run, or with null none. */
  show(id: string | null): void {
    const newest = this._list.at(0)?.id ?? '';
    this._isFollowing = id === null || id >= newest;
    this._after = id ?? newest;
    this.attach(id);
  }

  /** The shown run has not ended. */
  get isLive(): boolean {
    const { run } = this.store.value;
    return run !== null && isLive(run.state);
  }

  /** The editor has come into sight, or out of it: then nothing is asked for it. */
  setShown(isShown: boolean): void {
    if (isShown !== this._isShown) {
      this._isShown = isShown;
      this._list.isPaused = !isShown;
      this._run?.look(isShown);
    }
  }

  /** Ask again, as the file may have another name. */
  refresh(): void {
    this._list.setFilter({ path: this.path() });
  }

  /** List older runs too. */
  listMore(): void {
    this._limit += PAGE;
    this._list.show(0, this._limit - 1);
    this.onList();
  }

  private attach(id: string | null): void {
    this.leave();
    this.store.update({ run: null, steps: null });
    if (id !== null) {
      this._run = this.runs.watch(id, this._isShown);
      this._run.changed.connect(this.onRun, this);
      this._shown = this.runs.shows(id, this.isVisible);
      this.onRun();
    }
  }

  private leave(): void {
    this._run?.changed.disconnect(this.onRun, this);
    this._run?.release(this._isShown);
    this._run = null;
    this._shown?.dispose();
  }

  private onRun(): void {
    const view = this._run?.view;
    if (view) {
      this.store.update({ run: view, steps: view.steps });
    }
  }

  private onList(): void {
    const runs = this._list.first(this._limit);
    if (!this.isSame(runs)) {
      const hasMore = this._list.total > runs.length;
      this.store.update({ runs, hasMore });
    }
    this.follow(runs);
  }

  /** Show what goes on, unless what is shown goes on itself. */
  private follow(runs: readonly IRunSummary[]): void {
    const shown = this._run?.id ?? null;
    if (!this._isFollowing || (shown && this.runs.isLive(shown))) {
      return;
    }
    const live = runs.filter(
      ({ id, state }) => isLive(state) && id > this._after
    );
    const next = live.find(({ state }) => state === 'running') ?? live[0];
    if (next && next.id !== shown) {
      this.attach(next.id);
    }
  }

  private isSame(runs: readonly IRunSummary[]): boolean {
    const before = this.store.value.runs;
    return (
      before.length === runs.length &&
      runs.every((run, index) => run === before[index])
    );
  }

  private _after = '';
  private _isFollowing = true;
  private _isShown = true;
  private _limit = PAGE;
  private _list: FilteredRuns;
  private _run: IWatchedRun | null = null;
  private _shown: IDisposable | null = null;
}
