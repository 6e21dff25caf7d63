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
  /** Why it failed, and the last lines of its log. */
  detail: string | null;
};

const LAST_LINES = 3;

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
        const detail = isBad(state) ? await this.why(view) : null;
        this._ended.emit({ kind: 'run', id, name, state, detail });
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
    const detail = failed[0]?.reason ?? null;
    this._ended.emit({ kind: 'sweep', id, name, state, detail });
  }

  private async why(view: IRunView): Promise<string | null> {
    const step = Object.values(view.steps).find(({ state }) => isBad(state));
    const reason = step?.reason ?? view.reason;
    if (!step || step.attempts.length === 0) {
      return reason;
    }
    const attempt = step.attempts.length;
    const chunk = await this.runs.api
      .log({ run: view.id, step: step.id, attempt }, 0)
      .catch(() => null);
    if (!chunk?.complete) {
      return reason;
    }
    const lines = chunk.text.trimEnd().split('\n').slice(-LAST_LINES);
    return [reason, ...lines.map(plain)].filter(line => line).join('\n');
  }

  private _ended = new Signal<this, Ending>(this);
  private _told = new Set<string>();
  private _watched = new Set<string>();
}
