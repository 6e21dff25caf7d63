import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import type {
  ConvectApi,
  IMetrics,
  IOverview,
  IParameter,
  IProblem,
  IRuntime,
  ParameterType
} from '../../api';
import { sentenceOf } from '../../api';
import { Coalesced } from '../../ui/coalesce';
import { Observable } from '../../ui/observable';
import type { IChoice, IEntry, IOutcome, ISubject } from './choice';
import { EMPTY_CHOICE, outcomeOf } from './choice';
import { isPipeline } from './document';
import type { IFree } from './free';
import { freeOf } from './free';
import { looksLikeSeveral, textOf } from './values';

/** How often to look what is free, in milliseconds. */
const LOOK = 10000;

/** What was begun. */
export type Begun = { kind: 'run' | 'sweep'; id: string; name: string };

/** The form behind "Run as pipeline": what may be chosen, what is, and whether it fits. */
export class RunForm extends Observable {
  constructor(
    readonly api: ConvectApi,
    subject: ISubject,
    readonly trans: TranslationBundle,
    options: {
      choice: IChoice | null;
      /** Saves the file; there only when it has unsaved changes. */
      save?: () => Promise<void>;
      /** The kernels of the server, the default one first. */
      kernels?: readonly string[];
    }
  ) {
    super();
    this._subject = subject;
    this._choice = { ...EMPTY_CHOICE, ...options.choice };
    this._save = options.save;
    this.kernels = options.kernels ?? [];
    this._remembered = options.choice !== null;
    this._check = new Coalesced(() => this.check(), 300);
    this.ready = this.load();
  }

  /** Settled once it is known what may be chosen. */
  readonly ready: Promise<void>;

  readonly kernels: readonly string[];

  get subject(): ISubject {
    return this._subject;
  }

  get isPipeline(): boolean {
    const { path, document } = this._subject;
    return document !== null || (path !== null && isPipeline(path));
  }

  /** What it reports, as far as that is known. */
  get metrics(): IMetrics | null {
    return this._metrics;
  }

  get choice(): IChoice {
    return this._choice;
  }

  get parameters(): readonly IParameter[] {
    return this._parameters;
  }

  /** The language of the notebook has parameters that we cannot read. */
  get isOpaque(): boolean {
    return this._isOpaque;
  }

  /** The kernel that the notebook names; null when it is not a single notebook. */
  get kernel(): string | null {
    return this._kernel;
  }

  /** What is free where the runtime has nodes; null when that is not known. */
  get free(): IFree | null {
    return (
      this._overview &&
      freeOf(this._overview, this._choice.gpuType.trim(), this.trans)
    );
  }

  get runtimes(): readonly IRuntime[] {
    return this._runtimes;
  }

  get runtime(): IRuntime | undefined {
    return this._runtimes.find(({ name }) => name === this._choice.runtime);
  }

  get isLoading(): boolean {
    return this._isLoading;
  }

  get hasUnsavedChanges(): boolean {
    return this._save !== undefined;
  }

  get savesFirst(): boolean {
    return this._savesFirst;
  }

  set savesFirst(saves: boolean) {
    this._savesFirst = saves;
    this.touch();
  }

  /** What does not fit, in the words of the runtime. */
  get problems(): readonly IProblem[] {
    return this._problems;
  }

  /** Why it could not be begun. */
  get failure(): string | null {
    return this._failure;
  }

  get isBusy(): boolean {
    return this._isBusy;
  }

  get outcome(): IOutcome {
    return outcomeOf(
      this.subject,
      this._choice,
      this._parameters,
      this.runtime,
      this.trans,
      this._metrics
    );
  }

  get canRun(): boolean {
    return (
      !this._isLoading &&
      !this._isBusy &&
      Object.keys(this.outcome.errors).length === 0 &&
      !this._problems.some(({ severity }) => severity === 'error')
    );
  }

  /** Whether an error of the runtime is about this setting, or one in it. */
  isRefused(...setting: string[]): boolean {
    return this._problems.some(
      ({ severity, path }) =>
        severity === 'error' &&
        setting.every((part, index) => path?.[index] === part)
    );
  }

  has(feature: string): boolean {
    return this.runtime?.features.some(name => name === feature) ?? false;
  }

  set(change: Partial<IChoice>): void {
    const { runtime } = this._choice;
    this._choice = { ...this._choice, ...change };
    this._failure = null;
    this.touch();
    this._check.request();
    if (this._choice.runtime !== runtime) {
      this._overview = null;
      void this.look();
    }
  }

  /** What stands in the field of a parameter. */
  entry(parameter: IParameter): IEntry {
    const entry = this._choice.parameters[parameter.name];
    const text = entry?.text ?? textOf(parameter.default);
    return { text, several: entry?.several ?? false };
  }

  setEntry(parameter: IParameter, change: Partial<IEntry>): void {
    const { name, type } = parameter;
    const entry = { ...this.entry(parameter), ...change };
    if (change.text !== undefined && looksLikeSeveral(type, entry.text ?? '')) {
      entry.several = true;
    }
    const unchanged =
      !entry.several && entry.text === textOf(parameter.default);
    if (unchanged && !parameter.required) {
      entry.text = null;
    }
    this.set({ parameters: { ...this._choice.parameters, [name]: entry } });
  }

  isChanged(parameter: IParameter): boolean {
    const entry = this._choice.parameters[parameter.name];
    return entry !== undefined && entry.text !== null;
  }

  reset(parameter: IParameter): void {
    const parameters = { ...this._choice.parameters };
    delete parameters[parameter.name];
    this.set({ parameters });
  }

  /** Begin what is chosen; null, with `failure`, when it could not be. */
  async submit(): Promise<Begun | null> {
    this._isBusy = true;
    this._failure = null;
    this.touch();
    try {
      if (this._save && this._savesFirst) {
        await this._save();
        this._save = undefined;
        if (this._subject.isInEditor) {
          // The file is what the editor had.
          this._subject = { ...this._subject, document: null };
        }
      }
      const { request, sweep } = this.outcome;
      if (sweep) {
        const { id, name } = await this.api.startSweep(sweep);
        return { kind: 'sweep', id, name };
      }
      const { id, name } = await this.api.submit(request);
      return { kind: 'run', id, name };
    } catch (error) {
      this._failure = sentenceOf(error);
      return null;
    } finally {
      this._isBusy = false;
      this.touch();
    }
  }

  override dispose(): void {
    window.clearInterval(this._timer);
    this._check.dispose();
    super.dispose();
  }

  private async load(): Promise<void> {
    try {
      const [runtimes, parameters, about] = await Promise.all([
        this.api.runtimes(),
        this.loadParameters(),
        this.api.about()
      ]);
      const local = ({ name }: IRuntime) => (name === 'local' ? 0 : 1);
      this._runtimes = [...runtimes].sort((a, b) => local(a) - local(b));
      this._isOpaque = parameters === null;
      this._parameters = parameters ?? [];
      const known = this._runtimes.map(({ name }) => name);
      if (!this._remembered || !known.includes(this._choice.runtime)) {
        const runtime = known.includes(about.default_runtime)
          ? about.default_runtime
          : (known[0] ?? 'local');
        this._choice = { ...this._choice, runtime };
      }
      if (this._kernel === '') {
        // The notebook names none: the one that JupyterLab would start.
        const kernel = this._choice.kernel || (this.kernels[0] ?? '');
        this._choice = { ...this._choice, kernel };
      }
      this._check.request();
      void this.look();
      this._timer = window.setInterval(() => void this.look(), LOOK);
    } catch (error) {
      this._failure = sentenceOf(error);
    }
    this._isLoading = false;
    this.touch();
  }

  private async look(): Promise<void> {
    const { runtime } = this;
    if (!runtime || !this.has('kubernetes') || this.isDisposed) {
      return;
    }
    // The check says it when the cluster does not answer.
    const overview = await this.api.top(runtime.name).catch(() => null);
    if (runtime === this.runtime) {
      this._overview = overview;
      this.touch();
    }
  }

  private async loadParameters(): Promise<IParameter[] | null> {
    const { path, document } = this.subject;
    if (document) {
      return declaredIn(document.parameters as JSONObject | undefined);
    }
    if (path !== null && isPipeline(path)) {
      const described = await this.api.describe<{ parameters: JSONObject }>({
        path
      });
      return declaredIn(described.parameters);
    }
    const { kind, kernel, parameters } = await this.api.discover(path ?? '');
    this._kernel = kind === 'notebook' ? (kernel ?? '') : null;
    return parameters;
  }

  private async check(): Promise<void> {
    const { request, errors } = this.outcome;
    if (Object.keys(errors).length > 0 || !this.runtime) {
      return;
    }
    try {
      const { problems, metrics } = await this.api.check(request);
      this._problems = problems;
      this._metrics = metrics;
    } catch (error) {
      this._problems = [
        { severity: 'error', code: 'check', message: sentenceOf(error) }
      ];
    }
    this.touch();
  }

  private _check: Coalesced;
  private _choice: IChoice;
  private _failure: string | null = null;
  private _isBusy = false;
  private _isLoading = true;
  private _isOpaque = false;
  private _kernel: string | null = null;
  private _metrics: IMetrics | null = null;
  private _overview: IOverview | null = null;
  private _parameters: IParameter[] = [];
  private _problems: IProblem[] = [];
  private _remembered: boolean;
  private _runtimes: IRuntime[] = [];
  private _save: (() => Promise<void>) | undefined;
  private _savesFirst = true;
  private _subject: ISubject;
  private _timer = 0;
}

/** The parameters that a pipeline declares, as a notebook would tell of its own. */
function declaredIn(parameters: JSONObject | undefined): IParameter[] {
  return Object.entries(parameters ?? {}).map(([name, declared]) => {
    const declaration = declared as JSONObject;
    const value = declaration.default ?? null;
    return {
      name,
      type: (declaration.type as ParameterType | undefined) ?? null,
      default: value,
      source: value === null ? null : JSON.stringify(value),
      help: (declaration.description as string | undefined) ?? null,
      choices: (declaration.choices as IParameter['choices']) ?? [],
      required: declaration.required === true && value === null
    };
  });
}
