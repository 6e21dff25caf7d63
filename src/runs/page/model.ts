import type {
  ConvectApi,
  IAttemptKey,
  IRunEvent,
  IRunView,
  IStep
} from '../../api';
import { Coalesced } from '../../ui/coalesce';
import { Observable } from '../../ui/observable';
import { isBad, isLive } from '../../ui/states';
import type { RunsModel } from '../model';

export type Tab = 'log' | 'cells' | 'values' | 'metrics' | 'files' | 'details';

/** One run, kept up to date while it is looked at, and what of it is looked at. */
export class RunModel extends Observable {
  constructor(
    readonly runs: RunsModel,
    readonly id: string
  ) {
    super();
    this._load = new Coalesced(() => this.load(), 250);
    runs.runChanged.connect(this.onRun, this);
    runs.healing.connect(this.onHealing, this);
    this._load.request();
  }

  get api(): ConvectApi {
    return this.runs.api;
  }

  /** Null until the server has answered. */
  get view(): IRunView | null {
    return this._view;
  }

  get error(): unknown {
    return this._error;
  }

  get isDeleted(): boolean {
    return this._isDeleted;
  }

  /** The step that is looked at. */
  get step(): IStep | null {
    if (!this._view) {
      return null;
    }
    const { steps } = this._view;
    return steps[this._step ?? ''] ?? steps[mostTelling(this._view)] ?? null;
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
    this._load.dispose();
    super.dispose();
  }

  private onRun(_: RunsModel, event: IRunEvent): void {
    if (event.run !== this.id) {
      return;
    }
    if (event.state === 'deleted') {
      this._isDeleted = true;
      this.touch();
    } else {
      this._load.request();
    }
  }

  private onHealing(): void {
    if (!this._view || isLive(this._view.state) || this._error) {
      this._load.request();
    }
  }

  private async load(): Promise<void> {
    try {
      this._view = await this.api.run(this.id);
      this._error = null;
    } catch (error) {
      this._error = error;
    }
    this.touch();
  }

  private _attempt: number | undefined;
  private _error: unknown = null;
  private _isDeleted = false;
  private _load: Coalesced;
  private _step: string | undefined;
  private _tab: Tab | null = null;
  private _view: IRunView | null = null;
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
