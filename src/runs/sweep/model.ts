import type { IConvectApi, IRunSummary, ISweepView } from '../../api';
import type { IRunChange, IRunStore } from '../../tokens';
import { Coalesced } from '../../ui/coalesce';
import { PageModel } from '../../ui/observable';
import { isLive } from '../../ui/states';
import type { IColumn, ISort } from './table';
import { columnsOf, filtered, parseFilter, sorted } from './table';

/** One sweep, kept up to date while it is looked at, and how it is looked at. */
export class SweepModel extends PageModel {
  constructor(
    readonly runs: IRunStore,
    readonly id: string
  ) {
    super();
    this._load = new Coalesced(() => this.load(), 2000);
    runs.sweepsChanged.connect(this.onSweeps, this);
    runs.runsChanged.connect(this.onRuns, this);
    runs.healing.connect(this.onHealing, this);
  }

  get api(): IConvectApi {
    return this.runs.api;
  }

  get view(): ISweepView | null {
    return this._view;
  }

  get name(): string | null {
    const known = this.runs.sweeps?.find(({ id }) => id === this.id);
    return (this._view ?? known)?.name ?? null;
  }

  get error(): unknown {
    return this._error;
  }

  get isLive(): boolean {
    return this._view?.runs.some(run => isLive(run.state)) ?? false;
  }

  /** The best run; none while all have ended and the server has not yet told which it is. */
  get best(): string | null {
    return this._view && !this.isBehind ? this._view.best : null;
  }

  /** All runs have ended, and the rest of the view is from before the last end. */
  private get isBehind(): boolean {
    const { runs = [], done = 0 } = this._view ?? {};
    return !this.isLive && done < runs.length;
  }

  get columns(): IColumn[] {
    return this._columns;
  }

  get shownColumns(): IColumn[] {
    return this._columns.filter(({ id }) => !this._hidden.has(id));
  }

  hasColumn(column: string): boolean {
    return !this._hidden.has(column);
  }

  /** The lines of the table: filtered, between the marks of the plot, sorted. */
  get rows(): IRunSummary[] {
    return this._rows;
  }

  /** The runs that the filter lets through: the lines and points of the plots. */
  get points(): readonly IRunSummary[] {
    return this._points;
  }

  /** Names in the filter that no run has. */
  get unknownNames(): readonly string[] {
    return this._unknown;
  }

  get sort(): ISort | null {
    return this._sort;
  }

  get filter(): string {
    return this._filter;
  }

  /** The run under the pointer, in the table or in a plot. */
  get hovered(): string | null {
    return this._hovered;
  }

  /** Up, then down, then as it was; of a metric, what is likely the better end comes first. */
  sortBy(column: string): void {
    const isLow = this._view?.select?.startsWith('min:') ?? false;
    const first = column.startsWith('m:') && !isLow;
    const now = this._sort?.column === column ? this._sort.descending : null;
    this._sort =
      now === null
        ? { column, descending: first }
        : now === first
          ? { column, descending: !first }
          : null;
    this.arrange();
  }

  setFilter(text: string): void {
    this._filter = text;
    this.arrange();
  }

  toggleColumn(column: string): void {
    if (!this._hidden.delete(column)) {
      this._hidden.add(column);
    }
    this.arrange();
  }

  /** Only these runs are left between the marks; null for all. */
  mark(kept: readonly number[] | null): void {
    this._marked = kept && new Set(kept.map(index => this.points[index]?.id));
    this.arrange();
  }

  /** Runs that are marked, to compare them. */
  get selection(): ReadonlySet<string> {
    return this._selection;
  }

  toggle(run: string): void {
    if (!this._selection.delete(run)) {
      this._selection.add(run);
    }
    this.touch();
  }

  clearSelection(): void {
    this._selection.clear();
    this.touch();
  }

  hover(run: string | null): void {
    if (run !== this._hovered) {
      this._hovered = run;
      this.touch();
    }
  }

  async markBest(select: string | null): Promise<void> {
    this._view = await this.api.updateSweep(this.id, { select });
    this.arrange();
  }

  refresh(): void {
    this._load.request();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.runs.sweepsChanged.disconnect(this.onSweeps, this);
      this.runs.runsChanged.disconnect(this.onRuns, this);
      this.runs.healing.disconnect(this.onHealing, this);
      this._load.dispose();
      super.dispose();
    }
  }

  /** What came to pass unseen is asked for at once. */
  protected override onShown(isShown: boolean): void {
    if (isShown) {
      this._load.request();
    }
  }

  private ask(): void {
    if (this.isShown) {
      this._load.request();
    }
  }

  /** The state, the counts and the best of it; all of it when it has other runs than are known. */
  private onSweeps(): void {
    const found = this.runs.sweeps?.find(({ id }) => id === this.id);
    if (found && this._view) {
      const made = Object.values(found.counts).reduce((sum, n) => sum + n, 0);
      if (made !== this._view.runs.length) {
        this.ask();
      }
      this._view = { ...this._view, ...found };
      this.arrange();
    }
  }

  private onRuns(_: IRunStore, changes: readonly IRunChange[]): void {
    const ours = changes.filter(
      ({ before, after }) => (after ?? before)?.sweep === this.id
    );
    if (!this._view || ours.length === 0) {
      return;
    }
    const places = new Map(
      this._view.runs.map((run, index) => [run.id, index])
    );
    const runs = [...this._view.runs];
    for (const { id, after } of ours) {
      const place = places.get(id);
      if (place === undefined || !after) {
        this.ask();
      } else {
        runs[place] = after;
      }
    }
    this._view = { ...this._view, runs };
    this._columns = columnsOf(this._view);
    this.arrange();
  }

  private onHealing(): void {
    if (!this._view || this.isLive || this.isBehind || this._error) {
      this.ask();
    }
  }

  private async load(): Promise<void> {
    try {
      const view = await this.api.sweep(this.id);
      this.runs.take(view.runs, this.runs.counts);
      const newest = view.runs.map(run => this.runs.summary(run.id) ?? run);
      this._view = { ...view, runs: newest };
      this._columns = columnsOf(this._view);
      this._error = null;
    } catch (error) {
      this._error = error;
    }
    this.arrange();
  }

  private arrange(): void {
    const runs = this._view?.runs ?? [];
    const filter = parseFilter(this._filter, runs);
    const points = filtered(runs, this._columns, filter);
    const between = points.filter(run => this._marked?.has(run.id) ?? true);
    this._unknown = filter.unknown;
    this._points = points;
    this._rows = sorted(between, this._columns, this._sort);
    this.touch();
  }

  private _columns: IColumn[] = [];
  private _error: unknown = null;
  private _filter = '';
  private _hidden = new Set<string>();
  private _hovered: string | null = null;
  private _load: Coalesced;
  private _marked: Set<string> | null = null;
  private _points: IRunSummary[] = [];
  private _rows: IRunSummary[] = [];
  private _selection = new Set<string>();
  private _sort: ISort | null = null;
  private _unknown: string[] = [];
  private _view: ISweepView | null = null;
}
