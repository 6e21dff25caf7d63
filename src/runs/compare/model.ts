import type { ConvectApi, IRunSummary, IRunView } from '../../api';
import { Coalesced } from '../../ui/coalesce';
import { Observable } from '../../ui/observable';
import type { RunsModel } from '../model';

/** Runs side by side; more can be added and taken away. */
export class CompareModel extends Observable {
  constructor(
    readonly runs: RunsModel,
    ids: readonly string[]
  ) {
    super();
    this._ids = [...new Set(ids)];
    this._load = new Coalesced(() => this.load(), 500);
    runs.runChanged.connect(this.onRun, this);
    this._load.request();
  }

  get api(): ConvectApi {
    return this.runs.api;
  }

  get views(): readonly IRunView[] {
    return this._views;
  }

  get error(): unknown {
    return this._error;
  }

  /** Recent runs that could be added: those of the same file first. */
  get others(): readonly IRunSummary[] {
    return this._others.filter(({ id }) => !this._ids.includes(id));
  }

  add(id: string): void {
    this._ids = [...this._ids, id];
    this._load.request();
  }

  remove(id: string): void {
    this._ids = this._ids.filter(other => other !== id);
    this._views = this._views.filter(view => view.id !== id);
    this.touch();
  }

  override dispose(): void {
    this._load.dispose();
    super.dispose();
  }

  private onRun(_: RunsModel, { run }: { run: string }): void {
    if (this._ids.includes(run)) {
      this._load.request();
    }
  }

  private async load(): Promise<void> {
    const answers = await Promise.allSettled(
      this._ids.map(id => this.api.run(id))
    );
    this._views = answers
      .filter(answer => answer.status === 'fulfilled')
      .map(answer => answer.value);
    const failed = answers.find(answer => answer.status === 'rejected');
    this._error = failed ? failed.reason : null;
    this.touch();
    const path = this._views[0]?.path ?? undefined;
    this._others = (await this.api.listRuns({ path, limit: 50 })).runs;
    this.touch();
  }

  private _error: unknown = null;
  private _ids: string[];
  private _load: Coalesced;
  private _others: IRunSummary[] = [];
  private _views: IRunView[] = [];
}
