import type { TranslationBundle } from '@jupyterlab/translation';

import type {
  IConvectApi,
  IMetrics,
  IParameter,
  IRequest,
  IRuntime,
  Space
} from '../api';
import { isAway, sentenceOf } from '../api';
import type { IParameterForm } from '../settings/parameters';
import { axisText, textOf } from '../settings/parametervalues';
import type {
  IEntries,
  IEntry,
  IGiven,
  ISweepChoice,
  ISweepGiven
} from '../settings/sweepchoice';
import {
  countOfRuns,
  EMPTY_SWEEP,
  readEntries,
  sweepOf,
  withEntry
} from '../settings/sweepchoice';
import { Observable } from '../ui/observable';
import type {
  IClock,
  IKeeper,
  ISchedule,
  IScheduleBody,
  ITrigger,
  IUpcoming
} from './types';
import { requestOf, sweepIn, triggerOf } from './types';
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
  parameters: IEntries;
  sweep: ISweepChoice;
  overlap: NonNullable<IScheduleBody['overlap']>;
  concurrency: string;
  missed: NonNullable<IScheduleBody['missed']>;
  deadline: string;
  pinned: boolean;
}

type Complaints = Partial<Record<keyof IScheduleValues, string>>;

/** A new schedule of a file, or one that is edited. */
export class ScheduleForm extends Observable implements IParameterForm {
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

  /** Those of the file, and those that the schedule gives though the file does not name them. */
  get parameters(): readonly IParameter[] {
    const known = new Set(this._parameters.map(({ name }) => name));
    const others = Object.keys(this._values.parameters);
    return [
      ...this._parameters,
      ...others.filter(name => !known.has(name)).map(unknownParameter)
    ];
  }

  get entries(): IEntries {
    return this._values.parameters;
  }

  setEntry({ name }: IParameter, entry: IEntry | null): void {
    this.set({ parameters: withEntry(this.entries, name, entry) });
  }

  get sweepChoice(): ISweepChoice {
    return this._values.sweep;
  }

  setSweepChoice(change: Partial<ISweepChoice>): void {
    this.set({ sweep: { ...this._values.sweep, ...change } });
  }

  /** What it reports, as far as that is known. */
  get metrics(): IMetrics | null {
    return this._metrics;
  }

  /** What the values of parameters can refer to. */
  get references(): string[] {
    const own = {
      cron: [],
      every: [],
      file: ['${{ schedule.file }}'],
      run: ['${{ schedule.run }}', '${{ schedule.state }}'],
      call: ['${{ schedule.body.ref }}']
    }[this._values.kind];
    return [...own, '${{ schedule.date }}', '${{ schedule.due }}'];
  }

  /** How many runs each due time makes. */
  get size(): number {
    const { sweep } = this.given;
    return sweep ? countOfRuns(sweep) : 1;
  }

  get isSweep(): boolean {
    return this.given.sweep !== null;
  }

  /** What is wrong with the parameters, and with how their values are gone through. */
  get errors(): Readonly<Record<string, string>> {
    return this.given.errors;
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
    if (change.kind && change.kind !== this._values.kind) {
      // Times of another clock are not the next ones.
      this._upcoming = this._clockError = null;
    }
    this._values = { ...this._values, ...change };
    this._failure = null;
    this.check();
    this.touch();
  }

  /** The schedule as the server has taken it; null when it has not, with `failure`. */
  async submit(): Promise<ISchedule | null> {
    const wrong = { ...this.complaints, ...this.errors };
    if (this._isBusy || Object.keys(wrong).length > 0) {
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
    const { values, edited, given } = this;
    const known = edited && requestOf(edited);
    const request: IRequest = {
      ...(known ?? { path: this.path }),
      runtime: values.runtime,
      parameters: given.values
    };
    const swept = edited && sweepIn(edited);
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
      ...(values.name ? { name: values.name } : {}),
      ...(given.sweep || swept ? { sweep: given.sweep } : {})
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

  /** What the fields of parameters amount to. */
  private get given(): Omit<IGiven, 'space'> & {
    sweep: (ISweepGiven & { seed?: number }) | null;
  } {
    const { parameters, sweep } = this._values;
    const { space, ...given } = readEntries(
      this.parameters,
      parameters,
      sweep,
      this.trans,
      true
    );
    const { errors } = given;
    const chosen = sweepOf({ space, errors }, sweep, this.trans, this._metrics);
    const seed = this.edited && sweepIn(this.edited)?.seed;
    return {
      ...given,
      sweep: chosen && seed ? { ...chosen, seed } : chosen
    };
  }

  private async look(): Promise<void> {
    const path = (this.edited && requestOf(this.edited).path) ?? this.path;
    const [found, runtimes, listed, checked] = await Promise.all([
      path ? this.api.discover({ path }).catch(() => null) : null,
      this.api.runtimes().catch(() => null),
      this.api.listSchedules().catch(() => null),
      path ? this.api.check('local', { path }).catch(() => null) : null
    ]);
    this._metrics = checked?.metrics ?? null;
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
  private _metrics: IMetrics | null = null;
  private _parameters: readonly IParameter[] = [];
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
    sweep: EMPTY_SWEEP,
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
    ...sweptValues(view),
    overlap: view.overlap,
    concurrency: String(view.concurrency),
    missed: view.missed,
    deadline: durationText(view.deadline),
    pinned: view.pinned
  };
}

/** What it gives to parameters, and how it goes through those that have several values. */
function sweptValues(
  view: ISchedule
): Pick<IScheduleValues, 'parameters' | 'sweep'> {
  const swept = sweepIn(view);
  const { space = {}, select } = swept ?? {};
  const [goal, metric = ''] = (select ?? '').split(/:(.*)/s);
  const entries = [
    ...Object.entries(requestOf(view).parameters ?? {}).map(
      ([name, value]) => [name, textOf(value), false] as const
    ),
    ...Object.entries(space as Space).map(
      ([name, axis]) => [name, axisText(axis), true] as const
    )
  ];
  return {
    parameters: Object.fromEntries(
      entries.map(([name, text, several]) => [name, { text, several }])
    ),
    sweep: {
      mode: swept?.mode ?? EMPTY_SWEEP.mode,
      samples: String(swept?.samples ?? EMPTY_SWEEP.samples),
      concurrency: String(swept?.concurrency ?? ''),
      goal: goal as ISweepChoice['goal'],
      metric
    }
  };
}

/** One that the file does not name, or that nobody could read. */
function unknownParameter(name: string): IParameter {
  return {
    name,
    type: null,
    default: null,
    source: null,
    help: null,
    choices: [],
    required: false
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
