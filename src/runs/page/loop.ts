import type { JSONValue } from '@lumino/coreutils';

import type {
  AnyNumber,
  IConvectApi,
  IGroup,
  IItemsQuery,
  ILoopItem,
  ILoopItems,
  IStep,
  State
} from '../../api';
import { Coalesced } from '../../ui/coalesce';
import { isObject } from '../../ui/json';
import { Observable } from '../../ui/observable';
import { isBad } from '../../ui/states';

const PAGE = 100;
/** Pages that one request asks for at most. */
const MOST_PAGES = 4;
/** A loop that goes on changes all the time, its table once in a while (milliseconds). */
const LATER = 500;
/** Values that items gave, beside each other. */
const MOST_COLUMNS = 8;

/** What one of the steps of each item gave. */
export interface IItemColumn {
  node: string;
  name: string;
}

export function valueIn(
  item: ILoopItem,
  { node, name }: IItemColumn
): JSONValue | AnyNumber | undefined {
  const step = ownSteps(item).find(step => (step.node ?? step.id) === node);
  return step?.metrics[name] ?? step?.outputs[name];
}

/** The steps of an item, without those of loops in it, which are there more than once. */
function ownSteps({ steps }: ILoopItem): IStep[] {
  const all = Object.values(steps);
  const depth = Math.min(...all.map(({ item }) => item?.length ?? 0));
  return all.filter(({ item }) => (item?.length ?? 0) === depth);
}

/** The step of an item to look at first: one that failed, that runs, that began last. */
export function tellingStep(item: ILoopItem): IStep | undefined {
  const steps = Object.values(item.steps);
  return (
    steps.find(({ state }) => isBad(state)) ??
    steps.find(({ state }) => state === 'running') ??
    [...steps].sort((a, b) => (b.started ?? 0) - (a.started ?? 0))[0]
  );
}

/** The items of one loop, of which only what is in sight is asked for; failed ones come first. */
export class LoopModel extends Observable {
  constructor(
    private readonly api: IConvectApi,
    readonly run: string,
    private _group: IGroup
  ) {
    super();
  }

  get group(): IGroup {
    return this._group;
  }

  /** Only items in this state, if one is chosen. */
  get filter(): State | null {
    return this._filter;
  }

  get count(): number {
    const { counts, items } = this._group;
    return (this._filter === null ? items : counts[this._filter]) ?? 0;
  }

  error: unknown = null;

  setFilter(state: State | null): void {
    this._filter = state;
    this._pages.clear();
    this._fresh.clear();
    this.touch();
    this._look.request();
  }

  /** The loop is as this says now; items that came with it need not be asked for. */
  update(group: IGroup, items?: ILoopItems | null): void {
    if (group === this._group) {
      return;
    }
    this._group = group;
    this._fresh.clear();
    if (items && this._asked === this._filter) {
      this.take(items);
    }
    this._asked = undefined;
    this.touch();
    this._lookLater.request();
  }

  /** What to ask for with the run: the items in sight. */
  get query(): IItemsQuery {
    const [first, last] = this.pagesInSight;
    this._asked = this._filter;
    return {
      loop: this._group.id,
      ...this.asked,
      offset: first * PAGE,
      limit: (last - first + 1) * PAGE
    };
  }

  /** The item in a row, once it is known. */
  at(row: number): ILoopItem | undefined {
    return this._pages.get(Math.floor(row / PAGE))?.[row % PAGE];
  }

  /** These rows are in sight. */
  show(first: number, last: number): void {
    this._sight = [first, last];
    if (this.wanted.length > 0) {
      this._look.request();
    }
  }

  override dispose(): void {
    this._look.dispose();
    this._lookLater.dispose();
    super.dispose();
  }

  /** What items gave, by step and name, as far as they are known. */
  get columns(): IItemColumn[] {
    const found = new Map<string, IItemColumn>();
    for (const item of this.known()) {
      for (const step of ownSteps(item)) {
        for (const name of Object.keys({ ...step.outputs, ...step.metrics })) {
          const node = step.node ?? step.id;
          found.set(`${node}.${name}`, { node, name });
        }
      }
    }
    return [...found.values()].slice(0, MOST_COLUMNS);
  }

  /** The fields of the items, where all that are known are objects. */
  get fields(): string[] | null {
    const values = this.known().map(({ value }) => value);
    return values.length > 0 && values.every(isObject)
      ? [...new Set(values.flatMap(value => Object.keys(value as object)))]
      : null;
  }

  private known(): ILoopItem[] {
    return [...this._pages.values()].flat();
  }

  private get asked(): IItemsQuery {
    return this._filter === null
      ? { worst_first: true }
      : { state: [this._filter] };
  }

  private get pagesInSight(): [number, number] {
    const [first, last] = this._sight.map(row => Math.floor(row / PAGE));
    return [first, Math.min(last, first + MOST_PAGES - 1)];
  }

  /** The pages in sight that are not known as they are since the loop changed. */
  private get wanted(): number[] {
    const [first, last] = this.pagesInSight;
    const pages: number[] = [];
    for (let page = first; page <= last; page++) {
      if (page * PAGE < this.count && !this._fresh.has(page)) {
        pages.push(page);
      }
    }
    return pages;
  }

  private take({ offset, page: items }: ILoopItems): void {
    for (let start = 0; start < items.length; start += PAGE) {
      const page = (offset + start) / PAGE;
      this._pages.set(page, items.slice(start, start + PAGE));
      this._fresh.add(page);
    }
  }

  private async look(): Promise<void> {
    const { wanted, _filter: filter, _group: group } = this;
    if (wanted.length === 0) {
      return;
    }
    wanted.forEach(page => this._fresh.add(page));
    try {
      const found = await this.api.items(
        { run: this.run, loop: group.id },
        {
          ...this.asked,
          offset: wanted[0] * PAGE,
          limit: (wanted[wanted.length - 1] - wanted[0] + 1) * PAGE
        }
      );
      if (filter === this._filter) {
        this.take(found);
      }
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    this.touch();
  }

  /** The filter with which the run was asked for items; undefined when it was not. */
  private _asked: State | null | undefined;
  private _filter: State | null = null;
  private _fresh = new Set<number>();
  private _look = new Coalesced(() => this.look(), 0);
  private _lookLater = new Coalesced(() => this.look(), LATER);
  private _pages = new Map<number, readonly ILoopItem[]>();
  private _sight: [number, number] = [0, 40];
}
