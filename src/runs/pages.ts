import type { ConvectApi, IRunSummary, State } from '../api';
import { Coalesced } from '../ui/coalesce';
import { Observable } from '../ui/observable';

export const PAGE_SIZE = 100;

/** What the list shows; empty fields ask for everything. */
export interface IRunFilter {
  text: string;
  states: State[];
  runtime: string;
  /** Leave out the runs of sweeps. */
  grouped: boolean;
}

export const NO_FILTER: IRunFilter = {
  text: '',
  states: [],
  runtime: '',
  grouped: false
};

/**
 * A list of any number of runs, of which only the part that is looked at is
 * loaded. What is loaded stays visible until something newer takes its place.
 */
export class RunPages extends Observable {
  constructor(private readonly api: ConvectApi) {
    super();
    this._load = new Coalesced(() => this.load(), 150);
  }

  get filter(): IRunFilter {
    return this._filter;
  }

  get total(): number {
    return this._total;
  }

  /** How many there are of each state, whatever states the filter asks for. */
  get counts(): Partial<Record<State, number>> {
    return this._counts;
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
    return this._pages.get(Math.floor(index / PAGE_SIZE))?.[index % PAGE_SIZE];
  }

  /** Where a run is, if it is in the part that is loaded. */
  indexOf(id: string): number {
    for (const [number, page] of this._pages) {
      const index = page.findIndex(run => run.id === id);
      if (index >= 0) {
        return number * PAGE_SIZE + index;
      }
    }
    return -1;
  }

  /** Say which part is looked at. */
  show(first: number, last: number): void {
    this._first = Math.floor(Math.max(0, first) / PAGE_SIZE);
    this._last = Math.floor(Math.max(0, last) / PAGE_SIZE);
    if (this.missing().length > 0) {
      this._load.request();
    }
  }

  setFilter(change: Partial<IRunFilter>): void {
    this._filter = { ...this._filter, ...change };
    this._generation += 1;
    this.refresh();
    this.touch();
  }

  /** Ask again for what is looked at. */
  refresh(): void {
    this._stale = new Set(this._pages.keys());
    this._load.request();
  }

  override dispose(): void {
    this._load.dispose();
    super.dispose();
  }

  private missing(): number[] {
    const wanted: number[] = [];
    for (let page = this._first; page <= this._last; page += 1) {
      const loaded = this._pages.has(page) && !this._stale.has(page);
      const exists = page * PAGE_SIZE < this._total || page === 0;
      if (!loaded && exists) {
        wanted.push(page);
      }
    }
    return wanted;
  }

  private async load(): Promise<void> {
    const generation = this._generation;
    const { text, states, runtime, grouped } = this._filter;
    for (const page of this.missing()) {
      try {
        const answer = await this.api.listRuns({
          text,
          state: states,
          runtime,
          sweep: grouped ? 'none' : undefined,
          limit: PAGE_SIZE,
          offset: page * PAGE_SIZE
        });
        if (generation !== this._generation) {
          this._load.request();
          return;
        }
        this.take(page, answer.runs);
        this._total = answer.total;
        this._counts = answer.counts;
        this._isReady = true;
        this._error = null;
      } catch (error) {
        this._error = error;
        this.touch();
        return;
      }
    }
    this.forget();
    this.touch();
  }

  private take(page: number, runs: IRunSummary[]): void {
    this._pages.set(page, runs);
    this._stale.delete(page);
  }

  /** Drop stale pages that nobody looks at. */
  private forget(): void {
    for (const page of this._stale) {
      if (page < this._first || page > this._last) {
        this._pages.delete(page);
        this._stale.delete(page);
      }
    }
  }

  private _counts: Partial<Record<State, number>> = {};
  private _error: unknown = null;
  private _filter = NO_FILTER;
  private _first = 0;
  private _generation = 0;
  private _isReady = false;
  private _last = 0;
  private _load: Coalesced;
  private _pages = new Map<number, IRunSummary[]>();
  private _stale = new Set<number>();
  private _total = 0;
}
