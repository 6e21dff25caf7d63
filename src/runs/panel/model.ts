import type { IRunSummary, ISweepSummary } from '../../api';
import type { IRunChange, IRunStore } from '../../tokens';
import { Observable } from '../../ui/observable';
import { isLive } from '../../ui/states';
import type { IRunFilter } from '../filtered';
import { FilteredRuns } from '../filtered';

/** One line of the list. */
export type PanelRow =
  | { kind: 'sweep'; sweep: ISweepSummary; expanded: boolean }
  | { kind: 'run'; run: IRunSummary; nested: boolean; onTop?: boolean }
  | { kind: 'loading'; index: number };

/** A sweep among the runs, with its own runs below it when it is unfolded. */
interface IGroup {
  sweep: ISweepSummary;
  /** How many runs that belong to no sweep stand above it. */
  place: number;
  /** The line that it is on. */
  line: number;
  runs: FilteredRuns | undefined;
}

/**
 * What the panel shows: what is pinned, then runs and sweeps by time, the newest first;
 * each sweep can be unfolded to its runs. A search or a filter looks through all runs.
 */
export class PanelModel extends Observable {
  constructor(readonly runs: IRunStore) {
    super();
    this.list = new FilteredRuns(runs, { sweep: 'none' });
    this.pinned = new FilteredRuns(runs, { isPinned: true });
    this.list.changed.connect(this.touch, this);
    this.pinned.changed.connect(this.touch, this);
    runs.runsChanged.connect(this.onRuns, this);
    runs.changed.connect(this.touch, this);
    runs.refreshSweeps();
  }

  /** The runs that belong to no sweep, or all that the filter lets through. */
  readonly list: FilteredRuns;
  readonly pinned: FilteredRuns;

  /** Somebody looks at the panel. */
  setVisible(isVisible: boolean): void {
    const { list, pinned } = this;
    for (const each of [list, pinned, ...this._unfolded.values()]) {
      each.isPaused = !isVisible;
    }
  }

  /** Runs that are marked, for what is done to several at once. */
  get selection(): ReadonlySet<string> {
    return this._selection;
  }

  /** The line that the keyboard is on. */
  get cursor(): number {
    return Math.max(0, Math.min(this._cursor, this.rowCount - 1));
  }

  get rowCount(): number {
    return this.groups.reduce(
      (sum, { runs }) => sum + 1 + (runs?.total ?? 0),
      this.top + this.list.total
    );
  }

  /** How many lines there are above those by time. */
  get top(): number {
    return this.isFiltered ? 0 : this.pinned.total;
  }

  private get isFiltered(): boolean {
    return this.list.filter.sweep !== 'none';
  }

  row(index: number): PanelRow {
    if (index < this.top) {
      const run = this.pinned.at(index);
      return run
        ? { kind: 'run', run, nested: false, onTop: true }
        : { kind: 'loading', index };
    }
    const group = this.groupAt(index);
    const line = index - (group?.line ?? 0);
    if (group && line === 0) {
      const { sweep, runs } = group;
      return { kind: 'sweep', sweep, expanded: runs !== undefined };
    }
    const inside = group?.runs?.total ?? 0;
    const isNested = group !== undefined && line <= inside;
    const run = isNested
      ? group.runs?.at(line - 1)
      : this.list.at(this.placeOf(index, group));
    return run
      ? { kind: 'run', run, nested: isNested }
      : { kind: 'loading', index };
  }

  /** A name for the line that stays the same while the list changes around it. */
  key(index: number): string {
    const row = this.row(index);
    switch (row.kind) {
      case 'sweep':
        return `sweep ${row.sweep.id}`;
      case 'run':
        return `${row.onTop ? 'pinned' : 'run'} ${row.run.id}`;
      default:
        return `${row.kind} ${index}`;
    }
  }

  /** Where a line is now, -1 when it is not loaded. */
  indexOf(key: string): number {
    const id = key.slice(key.indexOf(' ') + 1);
    if (key.startsWith('sweep ')) {
      return this.groups.find(({ sweep }) => sweep.id === id)?.line ?? -1;
    }
    if (key.startsWith('pinned ')) {
      return this.pinned.indexOf(id);
    }
    for (const { runs, line } of this.groups) {
      const inside = runs?.indexOf(id) ?? -1;
      if (inside >= 0) {
        return line + 1 + inside;
      }
    }
    const place = this.list.indexOf(id);
    return place < 0
      ? -1
      : this.groups
          .filter(group => group.place <= place)
          .reduce(
            (sum, { runs }) => sum + 1 + (runs?.total ?? 0),
            this.top + place
          );
  }

  /** Say which lines are looked at. */
  show(first: number, last: number): void {
    const [top, bottom] = [first, last].map(index =>
      this.placeOf(index, this.groupAt(index))
    );
    this.list.show(top, bottom);
    for (const { runs, line } of this.groups) {
      const [from, to] = [first - line - 1, last - line - 1];
      if (runs && to >= 0 && from < runs.total) {
        runs.show(from, Math.min(to, runs.total - 1));
      }
    }
  }

  setFilter(change: Partial<IRunFilter>): void {
    const filter = { ...this.list.filter, ...change };
    const { text, states, runtime, isPinned } = filter;
    const isFiltered = !!text || !!runtime || states.length > 0 || isPinned;
    this._selection = new Set();
    this._cursor = 0;
    this.list.setFilter({ ...change, sweep: isFiltered ? '' : 'none' });
  }

  toggleSweep(id: string): void {
    const unfolded = this._unfolded.get(id);
    if (unfolded) {
      unfolded.dispose();
      this._unfolded.delete(id);
    } else {
      const runs = new FilteredRuns(this.runs, { sweep: id });
      runs.changed.connect(this.touch, this);
      this._unfolded.set(id, runs);
    }
    this.touch();
  }

  moveTo(index: number): void {
    this._cursor = Math.max(0, Math.min(index, this.rowCount - 1));
    this.touch();
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
    this.mark(first, last);
  }

  selectAll(): void {
    this.mark(0, this.rowCount - 1);
  }

  clearSelection(): void {
    this._selection = new Set();
    this.touch();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.runs.runsChanged.disconnect(this.onRuns, this);
    this.runs.changed.disconnect(this.touch, this);
    this.list.dispose();
    this.pinned.dispose();
    this._unfolded.forEach(runs => runs.dispose());
    super.dispose();
  }

  protected override touch(): void {
    this._groups = null;
    super.touch();
  }

  private onRuns(_: IRunStore, changes: readonly IRunChange[]): void {
    for (const { id, after } of changes) {
      if (!after) {
        this._selection.delete(id);
      }
    }
  }

  private mark(first: number, last: number): void {
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

  /** The sweeps that are shown, from top to bottom. */
  private get groups(): readonly IGroup[] {
    return (this._groups ??= this.makeGroups());
  }

  private makeGroups(): IGroup[] {
    if (this.isFiltered || !this.list.isReady) {
      return [];
    }
    // One whose runs are all deleted has nothing left to show.
    const sweeps = (this.runs.sweeps ?? []).filter(
      ({ state, counts }) => isLive(state) || Object.keys(counts).length > 0
    );
    const places = this.list.placesOf(sweeps.map(({ id }) => id));
    let above = this.top;
    return sweeps.map((sweep, index) => {
      const runs = this._unfolded.get(sweep.id);
      const place = places[index];
      const line = place + above;
      above += 1 + (runs?.total ?? 0);
      return { sweep, place, line, runs };
    });
  }

  /** The last sweep on this line or above it. */
  private groupAt(index: number): IGroup | undefined {
    const { groups } = this;
    let [low, high] = [0, groups.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (groups[middle].line <= index) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return groups[low - 1];
  }

  /** The place in the list of runs of a line below a sweep and its runs. */
  private placeOf(index: number, group: IGroup | undefined): number {
    if (!group) {
      return Math.max(0, index - this.top);
    }
    const below = index - group.line - 1 - (group.runs?.total ?? 0);
    return group.place + Math.max(0, below);
  }

  private _cursor = 0;
  private _groups: readonly IGroup[] | null = null;
  private _selection = new Set<string>();
  private _unfolded = new Map<string, FilteredRuns>();
}
