import type { IDisposable } from '@lumino/disposable';

import type { IRunSummary, IRunView, IStep } from '../api';
import { Coalesced } from '../ui/coalesce';
import { isLive } from '../ui/states';
import type { IRunsModel } from '../tokens';
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

/** Follows the runs of one file, and shows one of them. */
export class RunWatch implements IDisposable {
  constructor(
    private readonly model: IRunsModel,
    private readonly path: () => string
  ) {
    this._list = new Coalesced(() => this.loadList(), 1000);
    this._load = new Coalesced(() => this.loadRun(), 300);
    model.runChanged.connect(this.onRunChanged, this);
    model.healing.connect(this.onHealing, this);
    this._list.request();
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
    this.model.runChanged.disconnect(this.onRunChanged, this);
    this.model.healing.disconnect(this.onHealing, this);
    this._list.dispose();
    this._load.dispose();
    this.store.dispose();
  }

  /** Show a run, or with null none. */
  show(id: string | null): void {
    this._id = id;
    if (id === null) {
      this.store.update({ run: null, steps: null });
    } else {
      this._load.request();
      this._list.request();
    }
  }

  /** The shown run has not ended. */
  get isLive(): boolean {
    const { run } = this.store.value;
    return run !== null && isLive(run.state);
  }

  refresh(): void {
    this._list.request();
  }

  /** List older runs too. */
  listMore(): void {
    this._limit += PAGE;
    this._list.request();
  }

  private onRunChanged(_: IRunsModel, { run }: { run: string }): void {
    if (run === this._id) {
      this._load.request();
    }
    this._list.request();
  }

  private onHealing(): void {
    if (this._id !== null && this.isLive) {
      this._load.request();
    }
  }

  private async loadList(): Promise<void> {
    try {
      const { runs, total } = await this.model.api.listRuns({
        path: this.path(),
        limit: this._limit
      });
      this.store.update({ runs, hasMore: total > runs.length });
    } catch {
      // The next event or the slow poll asks again.
    }
  }

  private async loadRun(): Promise<void> {
    const id = this._id;
    if (id === null) {
      return;
    }
    try {
      const run = await this.model.api.run(id);
      if (id === this._id) {
        this.store.update({ run, steps: this.keepUnchanged(run.steps) });
      }
    } catch {
      // As above.
    }
  }

  /** Steps that did not change stay the same objects, so that nothing is drawn again. */
  private keepUnchanged(steps: Record<string, IStep>): Record<string, IStep> {
    const before = this.store.value.steps ?? {};
    return Object.fromEntries(
      Object.entries(steps).map(([id, step]) => [
        id,
        JSON.stringify(before[id]) === JSON.stringify(step) ? before[id] : step
      ])
    );
  }

  private _id: string | null = null;
  private _limit = PAGE;
  private _list: Coalesced;
  private _load: Coalesced;
}
