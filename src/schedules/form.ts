import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { IConvectApi, IDiscovery, IRequest, IRuntime } from '../api';
import { isAway, sentenceOf } from '../api';
import { Observable } from '../ui/observable';
import type {
  IClock,
  IKeeper,
  ISchedule,
  IScheduleBody,
  ITrigger,
  IUpcoming
} from './types';
import { requestOf, triggerOf } from './types';
import { durationText, parseDuration } from './words';

const PAUSE = 300;
const AGAIN = 2000;

/** What the fields hold, as it was typed. */
export interface IScheduleValues {
  name: string;
  kind: 'cron' | 'every' | 'file' | 'run' | 'call';
  cron: string;
  every: string;
  /** Which files. */
  pattern: string;
  settle: string;
  /** A file that has changed counts again. */
  changed: boolean;
  /** The file whose runs count. */
  after: string;
  afterState: 'succeeded' | 'failed' | 'ended';
  zone: string;
  start: string;
  end: string;
  jitter: string;
  runtime: string;
  keptBy: ISchedule['kept_by'];
  parameters: Record<string, string>;
  overlap: NonNullable<IScheduleBody['overlap']>;
  concurrency: string;
  missed: NonNullable<IScheduleBody['missed']>;
  deadline: string;
  pinned: boolean;
}

type Complaints = Partial<Record<keyof IScheduleValues, string>>;

/** A new schedule of a file, or one that is edited. */
export class ScheduleForm extends Observable {
  constructor(
    private readonly api: IConvectApi,
    readonly path: string | null,
    readonly trans: TranslationBundle,
    readonly edited: ISchedule | null = null
  ) {
    super();
    this._values = edited ? valuesOf(edited) : initial();
    this.ready = this.look();
    this.check();
  }

  /** Its file has been looked at. */
  readonly ready: Promise<void>;

  get values(): Readonly<IScheduleValues> {
    return this._values;
  }

  get parameters(): NonNullable<IDiscovery['parameters']> {
    return this._parameters;
  }

  get runtimes(): readonly IRuntime[] {
    return this._runtimes;
  }

  /** The runtime that was chosen, if it can keep the clock. */
  get clockKeeper(): IRuntime | null {
    const { kind, runtime } = this._values;
    const chosen = this._runtimes.find(each => each.name === runtime);
    return isClock(kind) && chosen?.features.includes('clock') ? chosen : null;
  }

  get keptBy(): ISchedule['kept_by'] {
    return this.clockKeeper ? this._values.keptBy : 'here';
  }

  /** The runtime would make the runs by its own clock, which pins the files. */
  get isRecurring(): boolean {
    return this.clockKeeper?.features.includes('recurring') ?? false;
  }

  get keeper(): IKeeper | null {
    return this._keeper;
  }

  get upcoming(): IUpcoming | null {
    return this._upcoming;
  }

  /** What is wrong with when it is due. */
  get clockError(): string | null {
    return this._clockError;
  }

  get failure(): string | null {
    return this._failure;
  }

  get isBusy(): boolean {
    return this._isBusy;
  }

  /** What is wrong with what was typed. */
  get complaints(): Complaints {
    const { trans } = this;
    const { every, kind, jitter, deadline, concurrency, start, end } =
      this._values;
    const { pattern, settle, after } = this._values;
    const found: Complaints = {};
    const duration = trans.__('Write a duration: 90s, 15m, 6h, 1d.');
    if (kind === 'every' && !parseDuration(every)) {
      found.every = duration;
    }
    if (kind === 'file' && !pattern) {
      found.pattern = trans.__('Specify which files, for example data/*.csv.');
    }
    if (kind === 'file' && parseDuration(settle) === null) {
      found.settle = duration;
    }
    if (kind === 'run' && !after) {
      found.after = trans.__(
        'Specify whose runs: a file, for example prepare.ipynb.'
      );
    }
    if (jitter && parseDuration(jitter) === null) {
      found.jitter = duration;
    }
    if (parseDuration(deadline) === null) {
      found.deadline = duration;
    }
    if (!/^[1-9]\d*$/.test(concurrency)) {
      found.concurrency = trans.__('Write a whole number, at least 1.');
    }
    const moment = trans.__(
      'Write a date, as in 2026-05-01 or 2026-05-01T08:00.'
    );
    if (start && secondsAt(start) === null) {
      found.start = moment;
    }
    if (end && secondsAt(end) === null) {
      found.end = moment;
    }
    return found;
  }

  set(change: Partial<IScheduleValues>): void {
    const isNow = change.kind && isClock(change.kind);
    if (isNow !== undefined && isNow !== isClock(this._values.kind)) {
      // What a trigger brings is not to be lost.
      change = { overlap: isNow ? 'skip' : 'queue', ...change };
    }
    this._values = { ...this._values, ...change };
    this._failure = null;
    this.check();
    this.touch();
  }

  setParameter(name: string, text: string): void {
    const parameters = { ...this._values.parameters, [name]: text };
    if (text === '') {
      delete parameters[name];
    }
    this.set({ parameters });
  }

  /** The schedule as the server has taken it; null when it has not, with `failure`. */
  async submit(): Promise<ISchedule | null> {
    if (this._isBusy || Object.keys(this.complaints).length > 0) {
      this.touch();
      return null;
    }
    this._isBusy = true;
    this.touch();
    try {
      const body = this.body();
      return await (this.edited
        ? this.api.updateSchedule(this.edited.id, body)
        : this.api.addSchedule(body));
    } catch (error) {
      this._failure = sentenceOf(error);
      return null;
    } finally {
      this._isBusy = false;
      this.touch();
    }
  }

  override dispose(): void {
    window.clearTimeout(this._timer);
    super.dispose();
  }

  private body(): IScheduleBody {
    const { values, edited } = this;
    const known = edited && requestOf(edited);
    const request: IRequest = {
      ...(known ?? { path: this.path }),
      runtime: values.runtime,
      parameters: this.typed()
    };
    const body: IScheduleBody = {
      request,
      clock: this.clock(),
      trigger: this.trigger(),
      overlap: values.overlap,
      concurrency: Number(values.concurrency),
      missed: values.missed,
      deadline: parseDuration(values.deadline) ?? 0,
      // While the runtimes are not known, who keeps the clock stays as it was.
      ...(this._runtimes.length > 0 ? { kept_by: this.keptBy } : {}),
      ...(values.name ? { name: values.name } : {})
    };
    // To pin anew is asked for elsewhere.
    const isPinned = edited?.pinned ?? false;
    if (this.keptBy === 'runtime' && this.isRecurring) {
      return body;
    }
    return values.pinned === isPinned
      ? body
      : { ...body, pinned: values.pinned };
  }

  private clock(): IClock {
    const { kind, cron, every, zone, start, end, jitter } = this._values;
    return {
      ...(kind === 'cron' ? { cron } : {}),
      ...(kind === 'every' ? { every: parseDuration(every) ?? 0 } : {}),
      ...(kind === 'every' && this.edited?.clock.anchor
        ? { anchor: this.edited.clock.anchor }
        : {}),
      zone,
      start: start ? secondsAt(start) : null,
      end: end ? secondsAt(end) : null,
      jitter: jitter ? (parseDuration(jitter) ?? 0) : 0
    };
  }

  private trigger(): ITrigger {
    const { kind, pattern, settle, changed, after, afterState } = this._values;
    switch (kind) {
      case 'file':
        return {
          file: { pattern, settle: parseDuration(settle) ?? 0, changed }
        };
      case 'run':
        return {
          run: {
            [/\.\w+$/.test(after) ? 'path' : 'name']: after,
            states: [...STATES[afterState]]
          }
        };
      case 'call':
        return { call: {} };
      default:
        // Beside a clock, a trigger is not shown here.
        return this.edited && isClock(kindOf(this.edited))
          ? triggerOf(this.edited)
          : {};
    }
  }

  /** Of the type that the file declares; what refers to the due time is a text until then. */
  private typed(): JSONObject {
    const types = new Map(
      this._parameters.map(({ name, type }) => [name, type])
    );
    return Object.fromEntries(
      Object.entries(this._values.parameters).map(([name, text]) => [
        name,
        valueOf(text, types.get(name) ?? null)
      ])
    );
  }

  private async look(): Promise<void> {
    const path = (this.edited && requestOf(this.edited).path) ?? this.path;
    const [found, runtimes, listed] = await Promise.all([
      path ? this.api.discover({ path }).catch(() => null) : null,
      this.api.runtimes().catch(() => null),
      this.api.listSchedules().catch(() => null)
    ]);
    this._parameters = found?.parameters ?? [];
    this._runtimes = runtimes?.runtimes ?? [];
    this._keeper = listed?.keeper ?? null;
    this.touch();
  }

  /** Ask for the next times once typing pauses. */
  private check(): void {
    window.clearTimeout(this._timer);
    this._timer = window.setTimeout(() => void this.ask(), PAUSE);
  }

  private async ask(): Promise<void> {
    const asked = ++this._asked;
    const { every, start, end, jitter } = this.complaints;
    if (every || start || end || jitter || !isClock(this._values.kind)) {
      this._upcoming = null;
      this._clockError = null;
      this.touch();
      return;
    }
    const { clock, error } = await this.api.nextTimes(this.clock()).then(
      clock => ({ clock, error: null }),
      (error: unknown) => ({ clock: null, error })
    );
    if (asked === this._asked && !this.isDisposed) {
      this._upcoming = clock;
      this._clockError = error ? sentenceOf(error) : null;
      this.touch();
      if (isAway(error)) {
        // The network may be away for a moment.
        this._timer = window.setTimeout(() => void this.ask(), AGAIN);
      }
    }
  }

  private _asked = 0;
  private _clockError: string | null = null;
  private _failure: string | null = null;
  private _isBusy = false;
  private _keeper: IKeeper | null = null;
  private _parameters: NonNullable<IDiscovery['parameters']> = [];
  private _runtimes: IRuntime[] = [];
  private _timer = 0;
  private _upcoming: IUpcoming | null = null;
  private _values: IScheduleValues;
}

const STATES = {
  succeeded: ['succeeded', 'cached'],
  failed: ['failed', 'lost'],
  ended: ['succeeded', 'cached', 'failed', 'lost', 'cancelled', 'skipped']
} as const;

/** Whether it is due by the clock. */
export function isClock(kind: IScheduleValues['kind']): boolean {
  return kind === 'cron' || kind === 'every';
}

function initial(): IScheduleValues {
  return {
    name: '',
    kind: 'cron',
    cron: '0 2 * * *',
    every: '6h',
    pattern: 'data/*.csv',
    settle: '5s',
    changed: true,
    after: '',
    afterState: 'succeeded',
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone || 'UTC',
    start: '',
    end: '',
    jitter: '',
    runtime: 'local',
    keptBy: 'here',
    parameters: {},
    overlap: 'skip',
    concurrency: '1',
    missed: 'last',
    deadline: '1d',
    pinned: false
  };
}

function kindOf(view: ISchedule): IScheduleValues['kind'] {
  const { cron, every } = view.clock;
  const { file, run, call } = triggerOf(view);
  const kinds = { cron, every, file, run, call };
  const kind = Object.entries(kinds).find(([, given]) => !!given)?.[0];
  return (kind as IScheduleValues['kind'] | undefined) ?? 'cron';
}

function valuesOf(view: ISchedule): IScheduleValues {
  const { clock } = view;
  const { file, run } = triggerOf(view);
  const states = run?.states ?? ['succeeded'];
  const request = requestOf(view);
  return {
    ...initial(),
    name: view.name,
    kind: kindOf(view),
    pattern: file?.pattern ?? 'data/*.csv',
    settle: durationText(file?.settle ?? 5),
    changed: file?.changed ?? true,
    after: run?.path ?? run?.name ?? '',
    afterState: !states.includes('failed')
      ? 'succeeded'
      : states.includes('succeeded')
        ? 'ended'
        : 'failed',
    cron: clock.cron ?? '0 2 * * *',
    every: clock.every ? durationText(clock.every) : '6h',
    zone: clock.zone ?? 'UTC',
    start: clock.start ? momentText(clock.start) : '',
    end: clock.end ? momentText(clock.end) : '',
    jitter: clock.jitter ? durationText(clock.jitter) : '',
    runtime: request.runtime ?? 'local',
    keptBy: view.kept_by,
    parameters: Object.fromEntries(
      Object.entries(request.parameters ?? {}).map(([name, value]) => [
        name,
        typeof value === 'string' ? value : JSON.stringify(value)
      ])
    ),
    overlap: view.overlap,
    concurrency: String(view.concurrency),
    missed: view.missed,
    deadline: durationText(view.deadline),
    pinned: view.pinned
  };
}

/** A moment of this browser's clock. */
export function secondsAt(text: string): number | null {
  const whole = /^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00` : text;
  const time = new Date(whole).getTime();
  return Number.isNaN(time) ? null : time / 1000;
}

function momentText(seconds: number): string {
  const date = new Date(seconds * 1000);
  const local = new Date(date.getTime() - date.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

export function valueOf(text: string, type: string | null): JSONValue {
  if (type === 'string' || text.includes('${{')) {
    return text;
  }
  try {
    return JSON.parse(text) as JSONValue;
  } catch {
    return text;
  }
}
