import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

import type { IRunEvent, IRunView, State } from '../api';
import { isBad, isLive } from '../ui/states';
import type { RunsModel } from './model';
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
};

type Why = Pick<Ending, 'step' | 'reason' | 'lines'>;

const WELL: Why = { step: null, reason: null, lines: [] };
const LAST_LINES = 3;
const LAST_BYTES = 4096;

/**
 * Tells the end of every run that was seen going on. The runs of a sweep end
 * together, when the last of them does.
 */
export class Endings {
  constructor(private readonly runs: RunsModel) {
    runs.runChanged.connect(this.onRun, this);
    runs.changed.connect(this.onLive, this);
  }

  get ended(): ISignal<this, Ending> {
    return this._ended;
  }

  private onRun(_: RunsModel, { run, state }: IRunEvent): void {
    if (state === 'deleted') {
      this._watched.delete(run);
    } else if (isLive(state)) {
      this._watched.add(run);
    } else {
      void this.look(run);
    }
  }

  private onLive(): void {
    const live = new Set(this.runs.live.map(({ id }) => id));
    for (const id of this._watched) {
      if (!live.has(id)) {
        void this.look(id);
      }
    }
    live.forEach(id => this._watched.add(id));
  }

  private async look(id: string): Promise<void> {
    if (!this._watched.delete(id)) {
      return;
    }
    try {
      const view = await this.runs.api.run(id);
      if (isLive(view.state)) {
        this._watched.add(id);
      } else if (view.sweep) {
        await this.lookAtSweep(view.sweep);
      } else if (!this._told.has(id)) {
        // A list that was on its way may still call it live.
        this._told.add(id);
        const { name, state } = view;
        const why = isBad(state) ? await this.why(view) : WELL;
        this._ended.emit({ kind: 'run', id, name, state, ...why });
      }
    } catch {
      return; // Deleted, or the server does not answer.
    }
  }

  private async lookAtSweep(id: string): Promise<void> {
    const { runs, name } = await this.runs.api.sweep(id);
    if (runs.some(({ state }) => isLive(state)) || this._told.has(id)) {
      return;
    }
    this._told.add(id);
    window.setTimeout(() => this._told.delete(id), 10000);
    const failed = runs.filter(({ state }) => isBad(state));
    const state = failed.length === runs.length ? 'failed' : 'succeeded';
    const reason = failed[0]?.reason ?? null;
    this._ended.emit({ kind: 'sweep', id, name, state, ...WELL, reason });
  }

  private async why(view: IRunView): Promise<Why> {
    const step = Object.values(view.steps).find(({ state }) => isBad(state));
    const reason = step?.reason ?? view.reason;
    if (!step || step.attempts.length === 0) {
      return { ...WELL, reason };
    }
    const attempt = step.attempts.length;
    const key = { run: view.id, step: step.id, attempt };
    const chunk = await this.runs.api.logEnd(key, LAST_BYTES).catch(() => null);
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
  private _told = new Set<string>();
  private _watched = new Set<string>();
}
