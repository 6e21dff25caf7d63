import type { ConvectApi, IAttemptKey, IRunView, IStep } from '../../api';
import { Observable } from '../../ui/observable';
import { isBad } from '../../ui/states';
import type { RunStore, WatchedRun } from '../store';

export type Tab = 'log' | 'cells' | 'values' | 'metrics' | 'files' | 'details';

/** What of a run is looked at. */
export class RunModel extends Observable {
  constructor(
    readonly runs: RunStore,
    readonly id: string
  ) {
    super();
    this._run = runs.watch(id);
    this._run.changed.connect(this.touch, this);
  }

  get api(): ConvectApi {
    return this.runs.api;
  }

  /** Null until the server has answered. */
  get view(): IRunView | null {
    return this._run.view;
  }

  get error(): unknown {
    return this._run.error;
  }

  get isDeleted(): boolean {
    return this._run.isDeleted;
  }

  /** The step that is looked at. */
  get step(): IStep | null {
    if (!this.view) {
      return null;
    }
    const { steps } = this.view;
    return steps[this._step ?? ''] ?? steps[mostTelling(this.view)] ?? null;
  }

  get attempt(): number {
    return this._attempt ?? Math.max(1, this.step?.attempts.length ?? 1);
  }

  /** Where the results of what is looked at lie, null while there are none. */
  get key(): IAttemptKey | null {
    const step = this.step;
    if (!step || (step.attempts.length === 0 && !step.source)) {
      return null;
    }
    return { run: this.id, step: step.id, attempt: this.attempt };
  }

  get tab(): Tab | null {
    return this._tab;
  }

  look(at: { step?: string; attempt?: number; tab?: Tab }): void {
    if (at.step !== undefined) {
      this._step = at.step;
      this._attempt = undefined;
    }
    this._attempt = at.attempt ?? this._attempt;
    this._tab = at.tab ?? this._tab;
    this.touch();
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this._run.changed.disconnect(this.touch, this);
      this._run.release();
      super.dispose();
    }
  }

  private _attempt: number | undefined;
  private _run: WatchedRun;
  private _step: string | undefined;
  private _tab: Tab | null = null;
}

/** The step to show first: one that failed, one that runs, the last one that began. */
export function mostTelling(view: IRunView): string {
  const steps = view.plan.steps
    .map(({ id }) => view.steps[id])
    .filter(step => step !== undefined);
  const begun = [...steps].sort((a, b) => (b.started ?? 0) - (a.started ?? 0));
  const found =
    steps.find(step => isBad(step.state)) ??
    steps.find(step => step.state === 'running') ??
    begun[0];
  return found?.id ?? '';
}
