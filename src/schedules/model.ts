import type { Event } from '@jupyterlab/services';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IConvectApi } from '../api';
import { RUN_EVENT, SWEEP_EVENT } from '../api';
import { ReadModel } from '../ui/reading';
import type {
  IDay,
  IKeeper,
  ILedgerLine,
  ISchedule,
  IScheduleSummary
} from './types';

const SCHEDULE_EVENT = 'https://events.jupyterlab-convect.dev/schedule/v1';
const SCHEMAS = [SCHEDULE_EVENT, RUN_EVENT, SWEEP_EVENT];
const SLOW = 30_000;
const PAGE = 100;
const MOST = 5000;

/** Says when schedules, or what they have started, may have changed. */
export class ScheduleNews {
  constructor(events: Event.IManager) {
    events.stream.connect((_, event) => {
      if (SCHEMAS.includes(event.schema_id)) {
        this._told.emit();
      }
    });
  }

  get told(): ISignal<this, void> {
    return this._told;
  }

  private _told = new Signal<this, void>(this);
}

/** Asks again when there is news and, slowly, in any case; only while it is looked at. */
export abstract class Watching extends ReadModel {
  constructor(
    readonly api: IConvectApi,
    private readonly news: ScheduleNews
  ) {
    super(SLOW);
    news.told.connect(this.refresh, this);
  }

  override dispose(): void {
    this.news.told.disconnect(this.refresh, this);
    super.dispose();
  }
}

/** All schedules. */
export class SchedulesModel extends Watching {
  get schedules(): readonly IScheduleSummary[] | null {
    return this._schedules;
  }

  get keeper(): IKeeper | null {
    return this._keeper;
  }

  protected async load(): Promise<void> {
    const { schedules, keeper } = await this.api.listSchedules();
    this._schedules = schedules;
    this._keeper = keeper;
  }

  private _schedules: IScheduleSummary[] | null = null;
  private _keeper: IKeeper | null = null;
}

/** One schedule with its ledger. */
export class ScheduleModel extends Watching {
  constructor(
    api: IConvectApi,
    news: ScheduleNews,
    readonly id: string
  ) {
    super(api, news);
  }

  get view(): ISchedule | null {
    return this._view;
  }

  get lines(): readonly ILedgerLine[] {
    return this._lines;
  }

  get hasMore(): boolean {
    return this._hasMore;
  }

  get days(): readonly IDay[] {
    return this._days;
  }

  get keeper(): IKeeper | null {
    return this._keeper;
  }

  /** The lines before those that are shown. */
  async more(): Promise<void> {
    const last = this._lines[this._lines.length - 1];
    const query = { limit: PAGE, before: last?.due };
    const { lines } = await this.api.ledger(this.id, query);
    this._lines = [...this._lines, ...lines];
    this._hasMore = lines.length === PAGE;
    this.touch();
  }

  protected async load(): Promise<void> {
    const shown = Math.max(PAGE, this._lines.length);
    const [view, { lines }, { days }, { keeper }] = await Promise.all([
      this.api.schedule(this.id),
      this.api.ledger(this.id, { limit: Math.min(shown, MOST) }),
      this.api.calendar(this.id),
      this.api.listSchedules()
    ]);
    this._view = view;
    this._lines = lines;
    this._hasMore = lines.length === shown;
    this._days = days;
    this._keeper = keeper;
  }

  private _view: ISchedule | null = null;
  private _lines: ILedgerLine[] = [];
  private _hasMore = false;
  private _days: IDay[] = [];
  private _keeper: IKeeper | null = null;
}
