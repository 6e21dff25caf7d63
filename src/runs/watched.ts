import type { IRunView, IStep } from '../api';
import { ConvectError } from '../api';
import type { IRunStore, IWatchedRun } from '../tokens';
import { Coalesced } from '../ui/coalesce';
import { Observable } from '../ui/observable';
import { isLive } from '../ui/states';

/** One run with its plan and its steps, for all who look at it. */
export class WatchedRun extends Observable implements IWatchedRun {
  constructor(
    private readonly store: IRunStore,
    readonly id: string,
    private readonly onLeft: () => void
  ) {
    super();
    this._load = new Coalesced(() => this.load(), 250, 750);
    store.healing.connect(this.onHealing, this);
  }

  get view(): IRunView | null {
    return this._view;
  }

  get error(): unknown {
    return this._error;
  }

  get isDeleted(): boolean {
    return this._isDeleted;
  }

  /** Somebody sees it now. */
  get isLookedAt(): boolean {
    return this._lookers > 0;
  }

  items: IWatchedRun['items'] = null;

  hold(isLooking: boolean): void {
    this._holders += 1;
    if (isLooking) {
      this.look(true);
    }
  }

  look(isLooking: boolean): void {
    this._lookers += isLooking ? 1 : -1;
    this.loadIfSeen();
  }

  release(isLooking = true): void {
    this._lookers -= isLooking ? 1 : 0;
    this._holders -= 1;
    if (this._holders === 0) {
      this.onLeft();
      this.dispose();
    }
  }

  /** The run has changed as often as this. Its end is asked for without delay. */
  hear(seq: number, isEnd = false): void {
    this._heard = Math.max(this._heard, seq);
    this.loadIfSeen(isEnd);
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

  private loadIfSeen(isUrgent = false): void {
    if (this.isLookedAt) {
      this._load.request(isUrgent);
    }
  }

  private async load(): Promise<void> {
    const before = this._view;
    const isNews = !before || before.seq < this._heard || !!this._error;
    if (!isNews || !this.isLookedAt) {
      return;
    }
    this._heard = 0;
    try {
      const items = this.items?.() ?? undefined;
      const view = await this.store.api.run(this.id, items);
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
  private _lookers = 0;
  private _view: IRunView | null = null;
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
