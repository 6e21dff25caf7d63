import type { ConvectApi, IRunSummary, ISweepView } from '../../api';
import { Coalesced } from '../../ui/coalesce';
import { Observable } from '../../ui/observable';
import { isLive } from '../../ui/states';
import type { RunsModel } from '../model';
import type { IColumn, ISort } from './table';
import { columnsOf, filtered, parseFilter, sorted } from './table';

/** One sweep, kept up to date while it is looked at, and how it is looked at. */
export class SweepModel extends Observable {
  constructor(
    readonly runs: RunsModel,
    readonly id: string
  ) {
    super();
    this._load = new Coalesced(() => this.load(), 500);
    runs.sweepChanged.connect(this.onSweep, this);
    runs.runChanged.connect(this.onRun, this);
    runs.healing.connect(this.onHealing, this);
    this._load.request();
  }

  get api(): ConvectApi {
    return this.runs.api;
  }

  get view(): ISweepView | null {
    return this._view;
  }

  get error(): unknown {
    return this._error;
  }

  get isLive(): boolean {
    return this._view?.runs.some(run => isLive(run.state)) ?? false;
  }

  get columns(): IColumn[] {
    return this._columns;
  }

  get shownColumns(): IColumn[] {
    return this._columns.filter(({ id }) => !this._hidden.has(id));
  }

  isShown(column: string): boolean {
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

  sortBy(column: string): void {
    const same = this._sort?.column === column;
    this._sort =
      same && this._sort?.descending ? null : { column, descending: same };
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

  hover(run: string | null): void {
    if (run !== this._hovered) {
      this._hovered = run;
      this.touch();
    }
  }

  async markBest(select: string | null): Promise<void> {
    this._view = await this.api.markBest(this.id, select);
    this.arrange();
  }

  refresh(): void {
    this._load.request();
  }

  override dispose(): void {
    this._load.dispose();
    super.dispose();
  }

  private onSweep(_: RunsModel, sweep: string): void {
    if (sweep === this.id) {
      this._load.request();
    }
  }

  private onRun(_: RunsModel, { run }: { run: string }): void {
    if (this._view?.runs.some(({ id }) => id === run)) {
      this._load.request();
    }
  }

  private onHealing(): void {
    if (!this._view || this.isLive || this._error) {
      this._load.request();
    }
  }

  private async load(): Promise<void> {
    try {
      this._view = await this.api.sweep(this.id);
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
  private _sort: ISort | null = null;
  private _unknown: string[] = [];
  private _view: ISweepView | null = null;
}
