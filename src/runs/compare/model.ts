import type { IConvectApi, IRunSummary, IRunView } from '../../api';
import type { IRunStore, IWatchedRun } from '../../tokens';
import { PageModel } from '../../ui/observable';
import { FilteredRuns } from '../filtered';

/** How many runs are offered to be added. */
const OFFERED = 50;

/** Runs side by side; more can be added and taken away. */
export class CompareModel extends PageModel {
  constructor(
    readonly runs: IRunStore,
    ids: readonly string[]
  ) {
    super();
    this._isAlone = ids.length === 1;
    ids.forEach(id => this.add(id));
  }

  get api(): IConvectApi {
    return this.runs.api;
  }

  /** What is compared; what is opened again after a reload. */
  get ids(): string[] {
    return this._watched.map(({ id }) => id);
  }

  get views(): readonly IRunView[] {
    return this._watched.flatMap(({ view }) => view ?? []);
  }

  get error(): unknown {
    return this._watched.find(({ error }) => error)?.error ?? null;
  }

  /** Recent runs of the same file that could be added. */
  get others(): readonly IRunSummary[] {
    const ids = this.ids;
    const found = this._others?.first(OFFERED) ?? [];
    return found.filter(({ id }) => !ids.includes(id));
  }

  add(id: string): void {
    if (!this.ids.includes(id)) {
      const watched = this.runs.watch(id, this.isShown);
      watched.changed.connect(this.onRun, this);
      this._watched.push(watched);
      this.touch();
    }
  }

  remove(id: string): void {
    const watched = this._watched.find(each => each.id === id);
    if (watched) {
      this._watched = this._watched.filter(each => each !== watched);
      this.release(watched);
      this.touch();
    }
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._watched.forEach(watched => this.release(watched));
      this._others?.dispose();
      super.dispose();
    }
  }

  protected override onShown(isShown: boolean): void {
    this._watched.forEach(watched => watched.look(isShown));
    if (this._others) {
      this._others.isPaused = !isShown;
    }
  }

  private onRun(): void {
    const [first] = this.views;
    if (first && !this._others) {
      const path = first.path ?? '';
      this._others = new FilteredRuns(this.runs, { path });
      this._others.changed.connect(this.onOthers, this);
    }
    this.touch();
  }

  /** One run alone is compared with the one before it. */
  private onOthers(): void {
    const [{ id, path }] = this.views;
    const [newest] = this.others;
    if (this._isAlone && path && newest) {
      this._isAlone = false;
      this.add((this.others.find(other => other.id < id) ?? newest).id);
    }
    this.touch();
  }

  private release(watched: IWatchedRun): void {
    watched.changed.disconnect(this.onRun, this);
    watched.release(this.isShown);
  }

  private _isAlone: boolean;
  private _others: FilteredRuns | null = null;
  private _watched: IWatchedRun[] = [];
}
