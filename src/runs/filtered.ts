import type { IRunPage, IRunSummary, State } from '../api';
import type { Counts, IRunChange, IRunStore } from '../tokens';
import { Coalesced } from '../ui/coalesce';
import { Observable } from '../ui/observable';
import { PIN } from './context';

export const PAGE_SIZE = 100;

/** Which runs; empty fields ask for everything. */
export interface IRunFilter {
  text: string;
  states: State[];
  runtime: string;
  path: string;
  /** The id of a sweep, or `none` to leave out the runs of sweeps. */
  sweep: string;
  isPinned: boolean;
}

export const NO_FILTER: IRunFilter = {
  text: '',
  states: [],
  runtime: '',
  path: '',
  sweep: '',
  isPinned: false
};

/**
 * The runs that a filter lets through, the newest first, of which only the part
 * that is looked at is loaded. What the store learns of runs changes the list
 * without a question, except where only the server can search.
 */
export class FilteredRuns extends Observable {
  constructor(
    private readonly store: IRunStore,
    filter: Partial<IRunFilter> = {}
  ) {
    super();
    this._filter = { ...NO_FILTER, ...filter };
    this._load = new Coalesced(() => this.load(), 150);
    this._search = new Coalesced(async () => this.refresh(), 2000);
    store.runsChanged.connect(this.onRuns, this);
    store.healing.connect(this.refresh, this);
    this._load.request();
  }

  /** Nobody looks, so nothing is asked. */
  get isPaused(): boolean {
    return this._isPaused;
  }
  set isPaused(paused: boolean) {
    this._isPaused = paused;
    if (!paused) {
      this.refresh();
    }
  }

  get filter(): IRunFilter {
    return this._filter;
  }

  /** How many there are, as far as they were counted. */
  get total(): number {
    return this._ids.length;
  }

  /** All were counted. */
  get isExact(): boolean {
    return this._isExact;
  }

  /** How many there are of each state, whatever states the filter asks for. */
  get counts(): Counts {
    const { text, runtime, path, isPinned } = this._filter;
    const isPart = text || runtime || path || isPinned;
    return isPart ? this._counts : this.store.counts;
  }

  /** True once the server has answered. */
  get isReady(): boolean {
    return this._isReady;
  }

  get error(): unknown {
    return this._error;
  }

  /** The run at a place in the list, undefined while it is not loaded. */
  at(index: number): IRunSummary | undefined {
    const id = this._ids[index];
    return id === undefined ? undefined : this.store.summary(id);
  }

  /** The first ones, as far as they are loaded. */
  first(count: number): IRunSummary[] {
    return this._ids
      .slice(0, count)
      .flatMap(id => (id && this.store.summary(id)) || []);
  }

  /** Where a run is, if it is in the part that is loaded. */
  indexOf(id: string): number {
    return this._ids.indexOf(id);
  }

  /** Before which place of the list each of these ids, the newest first, belongs by its time. */
  placesOf(ids: readonly string[]): number[] {
    const places: number[] = [];
    let place = this._ids.length;
    let index = place - 1;
    for (const id of [...ids].reverse()) {
      for (; index >= 0; index -= 1) {
        const other = this._ids[index];
        if (other !== undefined && other > id) {
          break;
        }
        place = other === undefined ? place : index;
      }
      places.unshift(place);
    }
    return places;
  }

  /** Say which part is looked at. */
  show(first: number, last: number): void {
    this._first = Math.max(0, first);
    this._last = Math.max(0, last);
    if (this.missing().length > 0) {
      this._load.request();
    }
  }

  setFilter(change: Partial<IRunFilter>): void {
    this._filter = { ...this._filter, ...change };
    this._question += 1;
    this.refresh();
    this.touch();
  }

  /** Ask again for what is looked at. */
  refresh(): void {
    this._epoch += 1;
    this._load.request();
  }

  override dispose(): void {
    if (this.isDisposed) {
      return;
    }
    this.store.runsChanged.disconnect(this.onRuns, this);
    this.store.healing.disconnect(this.refresh, this);
    this._load.dispose();
    this._search.dispose();
    super.dispose();
  }

  private onRuns(_: IRunStore, changes: readonly IRunChange[]): void {
    if (!this._isReady) {
      return;
    }
    for (const { id, after } of changes) {
      const isListed = this._listed.has(id);
      if (!after || (isListed && !this.lets(after))) {
        this.remove(id);
      } else if (!isListed && this.lets(after)) {
        if (this._filter.text) {
          this._search.request();
        } else {
          this.insert(id);
        }
      }
    }
    this.touch();
  }

  /** The filter lets it through, the text aside. */
  private lets({ state, runtime, path, sweep, labels }: IRunSummary): boolean {
    const { states, runtime: where, path: file, sweep: of } = this._filter;
    return (
      (!this._filter.isPinned || PIN in labels) &&
      (states.length === 0 || states.includes(state)) &&
      (!where || where === runtime) &&
      (!file || file === path) &&
      (!of || of === (sweep ?? 'none'))
    );
  }

  /** Ids sort by time; one that belongs where nothing is loaded is met there. */
  private insert(id: string): void {
    const place = this._ids.findIndex(
      other => other === undefined || other < id
    );
    const index = place < 0 ? this._ids.length : place;
    if (this._ids[index] !== undefined || index === this._ids.length) {
      this._ids.splice(index, 0, id);
      this._listed.add(id);
    } else {
      this._ids.push(undefined);
    }
    this._edits += 1;
  }

  private remove(id: string): void {
    if (this._listed.delete(id)) {
      this._ids.splice(this._ids.indexOf(id), 1);
      this._edits += 1;
    }
  }

  private missing(): number[] {
    const wanted: number[] = [];
    const last = Math.floor(this._last / PAGE_SIZE);
    let page = Math.floor(this._first / PAGE_SIZE);
    for (; page <= last; page += 1) {
      const exists = page * PAGE_SIZE < this._ids.length || page === 0;
      if (
        exists &&
        (this._loaded.get(page) !== this._epoch || this.hasGap(page))
      ) {
        wanted.push(page);
      }
    }
    return wanted;
  }

  private hasGap(page: number): boolean {
    const end = Math.min((page + 1) * PAGE_SIZE, this._ids.length);
    for (let index = page * PAGE_SIZE; index < end; index += 1) {
      if (!this.at(index)) {
        return true;
      }
    }
    return false;
  }

  private async load(): Promise<void> {
    if (this._isPaused) {
      return;
    }
    const question = this._question;
    for (const page of this.missing()) {
      const [epoch, edits] = [this._epoch, this._edits];
      const { text, states, runtime, path, sweep, isPinned } = this._filter;
      try {
        const answer = await this.store.api.listRuns({
          text,
          state: states,
          runtime,
          path,
          sweep,
          label: isPinned ? [`${PIN}=`] : [],
          limit: PAGE_SIZE,
          offset: page * PAGE_SIZE
        });
        if (question !== this._question) {
          this._load.request();
          return;
        }
        this.store.take(answer.runs, this.store.counts);
        if (this._answered !== question) {
          this._answered = question;
          this._ids = [];
          this._loaded.clear();
        }
        this.fill(page, answer);
        this._loaded.set(page, epoch);
        // What came or went meanwhile may be missing in the answer.
        if (edits !== this._edits) {
          this.refresh();
        }
        this._counts = answer.counts;
        this._isReady = true;
        this._error = null;
      } catch (error) {
        this._error = error;
        this.touch();
        return;
      }
    }
    this.touch();
  }

  private fill(page: number, { runs, total, exact }: IRunPage): void {
    const offset = page * PAGE_SIZE;
    const end = offset + runs.length;
    const isLast = runs.length < PAGE_SIZE;
    // Where not all were counted, there is one more page until one is not full.
    const counted = exact === false ? end + PAGE_SIZE : total;
    const length = isLast ? end : Math.max(counted, end);
    this._isExact = exact !== false || isLast;
    this.forgetStale();
    const fresh = new Set(runs.map(({ id }) => id));
    this._ids = Array.from({ length }, (_, index) => {
      const id = this._ids[index];
      return id && !fresh.has(id) ? id : undefined;
    });
    runs.forEach(({ id }, index) => (this._ids[offset + index] = id));
    this._listed = new Set(this._ids.flatMap(id => id ?? []));
  }

  /** Drop what is stale and not looked at. */
  private forgetStale(): void {
    const [first, last] = [this._first, this._last].map(index =>
      Math.floor(index / PAGE_SIZE)
    );
    for (const [page, epoch] of this._loaded) {
      if (epoch !== this._epoch && (page < first || page > last)) {
        this._ids.fill(undefined, page * PAGE_SIZE, (page + 1) * PAGE_SIZE);
        this._loaded.delete(page);
      }
    }
  }

  private _answered = 0;
  private _counts: Counts = {};
  private _edits = 0;
  private _epoch = 0;
  private _error: unknown = null;
  private _filter: IRunFilter;
  private _first = 0;
  private _ids: (string | undefined)[] = [];
  private _isExact = true;
  private _isPaused = false;
  private _isReady = false;
  private _last = 0;
  private _listed = new Set<string>();
  private _load: Coalesced;
  /** The pages that were asked for, and when. */
  private _loaded = new Map<number, number>();
  private _question = 0;
  private _search: Coalesced;
}
