import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IRunSummary, IRunView, ISweepSummary, State } from '../api';
import { localTime } from '../api/clock';
import type { IRunChange, IRunStore } from '../tokens';
import { isBad, isLive } from '../ui/states';
import { plain } from './page/plain';

/** Something that was going on has ended. */
export type Ending = {
  kind: 'run' | 'sweep';
  id: string;
  name: string;
  state: State;
  /** The step that failed, when there are several. */
  step: string | null;
  /** Why it failed. */
  reason: string | null;
  /** The last lines of its log that say more than the reason. */
  lines: string[];
  /** Of how many runs of a sweep so many did not succeed. */
  failed: number;
  total: number;
};

type Why = Pick<Ending, 'step' | 'reason' | 'lines'>;

const WELL: Why = { step: null, reason: null, lines: [] };
const LIVELY: { state: State } = { state: 'running' };
const LAST_LINES = 3;
const LAST_BYTES = 4096;

/**
 * Tells the end of everything that ends while this page is open, wherever it was started
 * and however short it was. The runs of a sweep are told together, when the sweep ends; of what
 * nobody at this page has started, the runs of schedules and the calls of endpoints, only those
 * that did not succeed are told.
 */
export class Endings {
  constructor(private readonly runs: IRunStore) {
    runs.runsChanged.connect(this.onRuns, this);
    runs.sweepsChanged.connect(this.onSweeps, this);
  }

  get ended(): ISignal<this, Ending> {
    return this._ended;
  }

  private onRuns(_: IRunStore, changes: readonly IRunChange[]): void {
    for (const { id, before, after } of changes) {
      if (!after) {
        this._told.delete(id);
      } else if (
        !after.sweep &&
        (!isByItself(after) || isBad(after.state)) &&
        this.isNews(after, before)
      ) {
        this._told.add(after.id);
        void this.tellRun(after);
      }
    }
  }

  private onSweeps(): void {
    for (const sweep of this.runs.sweeps ?? []) {
      if (isLive(sweep.state)) {
        this._live.add(sweep.id);
        this._told.delete(sweep.id);
      } else if (this.isNews(sweep, this._live.has(sweep.id) ? LIVELY : null)) {
        this._live.delete(sweep.id);
        this._told.add(sweep.id);
        this.tellSweep(sweep);
      }
    }
  }

  /** It was seen going on, or has ended since this page is open; and nobody has told. */
  private isNews(
    after: { id: string; state: State; ended: number | null },
    before: { state: State } | null
  ): boolean {
    if (isLive(after.state) || this._told.has(after.id)) {
      return false;
    }
    const isRecent =
      after.ended !== null && localTime(after.ended) >= this.runs.began;
    return isRecent || (before !== null && isLive(before.state));
  }

  private async tellRun(run: IRunSummary): Promise<void> {
    const { id, name, state } = run;
    const why = isBad(state) ? await this.whyOf(run) : WELL;
    const failed = isBad(state) ? 1 : 0;
    this._ended.emit({
      kind: 'run',
      id,
      name,
      state,
      ...why,
      failed,
      total: 1
    });
  }

  private tellSweep({ id, name, state, counts, total }: ISweepSummary): void {
    const failed = (counts.failed ?? 0) + (counts.lost ?? 0);
    const ending = { kind: 'sweep' as const, id, name, state, ...WELL };
    this._ended.emit({ ...ending, failed, total });
  }

  private async whyOf(run: IRunSummary): Promise<Why> {
    try {
      return await this.why(await this.runs.api.run(run.id));
    } catch {
      return { ...WELL, reason: run.reason }; // Deleted, or the server does not answer.
    }
  }

  private async why(view: IRunView): Promise<Why> {
    const step = Object.values(view.steps).find(({ state }) => isBad(state));
    const reason = step?.reason ?? view.reason;
    if (!step || step.attempts.length === 0) {
      return { ...WELL, reason };
    }
    const attempt = step.attempts.length;
    const key = { run: view.id, step: step.id, attempt };
    const chunk = await this.runs.api
      .log(key, { last: LAST_BYTES })
      .catch(() => null);
    const lines = (chunk?.text ?? '')
      .trimEnd()
      .split('\n')
      .slice(-LAST_LINES)
      .map(plain)
      .filter(line => line && !reason?.includes(line));
    const several = view.plan.steps.length > 1;
    return { step: several ? step.id : null, reason, lines };
  }

  private _ended = new Signal<this, Ending>(this);
  private _live = new Set<string>();
  private _told = new Set<string>();
}

/** Whether a schedule or a caller has started it. */
function isByItself({ labels }: IRunSummary): boolean {
  return !!(labels.endpoint || labels.schedule);
}
