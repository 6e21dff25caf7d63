import { Notification } from '@jupyterlab/apputils';

import type { IRunEvent, IRunSummary, ISweepSummary } from '../../api';
import { sentenceOf } from '../../api';
import { Coalesced } from '../../ui/coalesce';
import { Observable } from '../../ui/observable';
import { isLive } from '../../ui/states';
import type { RunsModel } from '../model';
import type { IRunFilter } from '../pages';
import { RunPages } from '../pages';

/** How many sweeps are shown before somebody asks for all. */
const FEW_SWEEPS = 5;

/** One line of the list. */
export type Row =
  | { kind: 'sweeps' }
  | { kind: 'sweep'; sweep: ISweepSummary; expanded: boolean }
  | { kind: 'more'; hidden: number }
  | { kind: 'runs' }
  | { kind: 'run'; run: IRunSummary; nested: boolean }
  | { kind: 'loading'; index: number };

/**
 * What the panel shows: sweeps, each of which can be opened to its runs, and
 * below them all runs that belong to none. A search looks through all runs.
 */
export class PanelModel extends Observable {
  constructor(readonly runs: RunsModel) {
    super();
    this.pages = new RunPages(runs.api);
    this.pages.setFilter({ grouped: true });
    this.pages.changed.connect(this.touch, this);
    this._refreshSweeps = new Coalesced(() => this.loadSweeps(), 500);
    runs.runChanged.connect(this.onRun, this);
    runs.sweepChanged.connect(this._refreshSweeps.request, this._refreshSweeps);
    runs.healing.connect(this.refresh, this);
    runs.changed.connect(this.touch, this);
    this._refreshSweeps.request();
  }

  readonly pages: RunPages;

  /** Runs that are marked, for what is done to several at once. */
  get selection(): ReadonlySet<string> {
    return this._selection;
  }

  /** The line that the keyboard is on. */
  get cursor(): number {
    return this.passHeadings(Math.min(this._cursor, this.rowCount - 1), 1);
  }

  get rowCount(): number {
    return this.head.length + this.pages.total;
  }

  /** How many lines stand above the runs that belong to no sweep. */
  get headCount(): number {
    return this.head.length;
  }

  row(index: number): Row {
    const head = this.head;
    if (index < head.length) {
      return head[index];
    }
    const place = index - head.length;
    const run = this.pages.at(place);
    return run
      ? { kind: 'run', run, nested: false }
      : { kind: 'loading', index: place };
  }

  /** A name for the line that stays the same while the list changes around it. */
  key(index: number): string {
    const row = this.row(index);
    switch (row.kind) {
      case 'sweep':
        return `sweep ${row.sweep.id}`;
      case 'run':
        return `run ${row.run.id}`;
      default:
        return `${row.kind} ${index}`;
    }
  }

  /** Where a line is now, -1 when it is not loaded. */
  indexOf(key: string): number {
    const head = this.head;
    const inHead = head.findIndex((_, index) => this.key(index) === key);
    if (inHead >= 0 || !key.startsWith('run ')) {
      return inHead;
    }
    const place = this.pages.indexOf(key.slice(4));
    return place < 0 ? -1 : place + head.length;
  }

  /** Say which lines are looked at. */
  show(first: number, last: number): void {
    this.pages.show(first - this.head.length, last - this.head.length);
  }

  setFilter(change: Partial<IRunFilter>): void {
    const filter = { ...this.pages.filter, ...change };
    const grouped = !filter.text && !filter.runtime;
    this._selection = new Set();
    this._cursor = 0;
    this.pages.setFilter({ ...change, grouped });
  }

  toggleSweep(id: string): void {
    if (this._expanded.has(id)) {
      this._expanded.delete(id);
    } else {
      this._expanded.set(id, []);
      this._refreshSweeps.request();
    }
    this.touch();
  }

  async stopSweep(id: string): Promise<void> {
    try {
      await this.runs.api.stopSweep(id);
    } catch (error) {
      Notification.error(sentenceOf(error), { autoClose: 8000 });
    }
    this._refreshSweeps.request();
  }

  showAllSweeps(): void {
    this._allSweeps = true;
    this.touch();
  }

  moveTo(index: number): void {
    const place = Math.max(0, Math.min(index, this.rowCount - 1));
    this._cursor = this.passHeadings(place, index < this._cursor ? -1 : 1);
    this.touch();
  }

  /** All runs that a sweep has made. */
  async runsOf(sweep: string): Promise<string[]> {
    const { runs } = await this.runs.api.listRuns({ sweep, limit: 1000 });
    return runs.map(({ id }) => id);
  }

  select(id: string, mode: 'only' | 'toggle'): void {
    const selection = mode === 'only' ? new Set<string>() : this._selection;
    if (mode === 'toggle' && selection.has(id)) {
      selection.delete(id);
    } else {
      selection.add(id);
    }
    this._selection = selection;
    this.touch();
  }

  /** Mark all runs from the line that the keyboard is on to another one, as far as they are loaded. */
  selectTo(index: number): void {
    const [first, last] = [this.cursor, index].sort((a, b) => a - b);
    const selection = new Set(this._selection);
    for (let place = first; place <= last; place += 1) {
      const row = this.row(place);
      if (row.kind === 'run') {
        selection.add(row.run.id);
      }
    }
    this._selection = selection;
    this.touch();
  }

  clearSelection(): void {
    this._selection = new Set();
    this.touch();
  }

  refresh(): void {
    this.pages.refresh();
    this._refreshSweeps.request();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.pages.dispose();
    this._refreshSweeps.dispose();
    super.dispose();
  }

  /** The next line that is no heading; the other way when there is none. */
  private passHeadings(index: number, by: 1 | -1): number {
    const isHeading = (place: number) =>
      place < this.head.length &&
      ['sweeps', 'runs'].includes(this.head[place].kind);
    let place = index;
    while (place >= 0 && place < this.rowCount && isHeading(place)) {
      place += by;
    }
    return place < 0 && by < 0 ? this.passHeadings(0, 1) : place;
  }

  protected override touch(): void {
    this._head = null;
    super.touch();
  }

  /** The lines above the runs that belong to no sweep. */
  private get head(): Row[] {
    return (this._head ??= this.makeHead());
  }

  private makeHead(): Row[] {
    const { filter } = this.pages;
    if (!filter.grouped || filter.states.length > 0) {
      return [];
    }
    if (this._sweeps.length === 0) {
      return [];
    }
    const shown = this._allSweeps
      ? this._sweeps
      : this._sweeps.slice(0, FEW_SWEEPS);
    const rows: Row[] = [{ kind: 'sweeps' }];
    for (const sweep of shown) {
      const runs = this._expanded.get(sweep.id);
      rows.push({ kind: 'sweep', sweep, expanded: runs !== undefined });
      for (const run of runs ?? []) {
        rows.push({ kind: 'run', run, nested: true });
      }
    }
    const hidden = this._sweeps.length - shown.length;
    if (hidden > 0) {
      rows.push({ kind: 'more', hidden });
    }
    rows.push({ kind: 'runs' });
    return rows;
  }

  private onRun(_: RunsModel, event: IRunEvent): void {
    if (event.state === 'deleted') {
      this._selection.delete(event.run);
    }
    this.pages.refresh();
    if (this._expanded.size > 0) {
      this._refreshSweeps.request();
    }
  }

  private async loadSweeps(): Promise<void> {
    try {
      const sweeps = await this.runs.api.sweeps();
      // One whose runs are all deleted has nothing left to show.
      this._sweeps = sweeps.filter(
        ({ state, counts }) => isLive(state) || Object.keys(counts).length > 0
      );
      for (const id of this._expanded.keys()) {
        const { runs } = await this.runs.api.sweep(id);
        if (this._expanded.has(id)) {
          this._expanded.set(id, runs);
        }
      }
    } catch {
      return; // The runs model says that the server does not answer.
    }
    this.touch();
  }

  private _allSweeps = false;
  private _cursor = 0;
  private _expanded = new Map<string, IRunSummary[]>();
  private _head: Row[] | null = null;
  private _refreshSweeps: Coalesced;
  private _selection = new Set<string>();
  private _sweeps: ISweepSummary[] = [];
}
