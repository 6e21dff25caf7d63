import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type {
  IConvectApi,
  IDefinition,
  IMetrics,
  IOverview,
  IParameter,
  IProblem,
  IConnectionTest,
  IOffering,
  IRuntime
} from '../../api';
import { isAway, sentenceOf } from '../../api';
import type { IParameterForm } from '../../settings/parameters';
import type { IEntry, ISweepChoice } from '../../settings/sweepchoice';
import { withEntry } from '../../settings/sweepchoice';
import { offeringOf } from '../../settings/offering';
import { Coalesced } from '../../ui/coalesce';
import { compact, isObject, withValue } from '../../ui/json';
import { Observable } from '../../ui/observable';
import type { IChoice, IOutcome, ISubject } from './choice';
import { EMPTY_CHOICE, outcomeOf } from './choice';
import { declaredIn, isPipeline, pipelineOf } from './document';
import type { IFree } from './free';
import { freeOf } from './free';

/** How often to look what is free, in milliseconds. */
const LOOK = 10000;
/** How soon to ask a server again that did not answer. */
const AGAIN = 2000;

/** Files with changes that no run would see, and how to save them. */
export interface IUnsaved {
  names: readonly string[];
  save: () => Promise<void>;
}

export interface IFormOptions {
  choice: Partial<IChoice> | null;
  /** The choice is that of last time, and not of the run that is asked for again. */
  isRemembered?: boolean;
  /** What holds where the choice says nothing: the user's settings. */
  defaults?: Partial<IChoice>;
  /** What has unsaved changes; there only when something has. */
  unsaved?: IUnsaved;
  /** The kernels of the server, the default one first. */
  kernels?: readonly string[];
  /** Images to choose from. */
  images?: readonly string[];
  /** The files that are to run as one pipeline, where there are several. */
  files?: readonly string[];
}

/** What was begun. */
export type Begun = { kind: 'run' | 'sweep'; id: string; name: string };

/** The form behind "Run as pipeline": what may be chosen, what is, and whether it fits. */
export class RunForm extends Observable implements IParameterForm {
  constructor(
    readonly api: IConvectApi,
    subject: ISubject,
    readonly trans: TranslationBundle,
    options: IFormOptions
  ) {
    super();
    this._subject = subject;
    this._choice = { ...EMPTY_CHOICE, ...options.defaults, ...options.choice };
    this._unsaved = options.unsaved;
    this.kernels = options.kernels ?? [];
    this.images = options.images ?? [];
    this._files = options.files
      ? { paths: options.files, isChain: true }
      : null;
    if (options.isRemembered) {
      this.offerSweep();
    }
    this._check = new Coalesced(() => this.check(), 300);
    this.ready = this.load();
  }

  /** Settled once it is known what may be chosen. */
  readonly ready: Promise<void>;

  readonly kernels: readonly string[];
  readonly images: readonly string[];
  /** Which parts of the form are open, once somebody has said so. */
  readonly openSections = new Map<string, boolean>();

  /** The files that run as one pipeline; null unless there are several. */
  get files(): { paths: readonly string[]; isChain: boolean } | null {
    return this._files;
  }

  setFiles(change: { paths?: readonly string[]; isChain?: boolean }): void {
    if (this._files) {
      this._files = { ...this._files, ...change };
      this.arrangeFiles();
      this.set({});
    }
  }

  /** Let a file run before the one above it. */
  moveFile(index: number): void {
    const paths = [...(this._files?.paths ?? [])];
    paths.splice(index - 1, 0, ...paths.splice(index, 1));
    this.setFiles({ paths });
  }

  /** Let a component run without a container, for good. */
  async approve(definition: IDefinition): Promise<void> {
    try {
      const body = { definition, approved: true };
      await this.api.approveComponent(body);
      this._check.request();
    } catch (error) {
      this._failure = sentenceOf(error);
      this.touch();
    }
  }

  /** The sweep of last time, which nobody has asked for yet. */
  get offered(): Readonly<Record<string, IEntry>> {
    return this._offered;
  }

  /** What the pipeline says of all its nodes. */
  get defaults(): JSONObject {
    const defaults = this._subject.content?.defaults;
    return isObject(defaults) ? defaults : {};
  }

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
    return this._overview && freeOf(this._overview, this.gpuType, this.trans);
  }

  private get gpuType(): string {
    const { resources } = this._choice.settings;
    const gpu = isObject(resources) ? resources.gpu : undefined;
    return isObject(gpu) && typeof gpu.type === 'string' ? gpu.type.trim() : '';
  }

  testConnection(): Promise<IConnectionTest> {
    return this.api.testConnection(this._choice.runtime);
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
    return this._unsaved !== undefined;
  }

  /** What is not saved, by name. */
  get unsavedNames(): readonly string[] {
    return this._unsaved?.names ?? [];
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

  /** Why it cannot be, or could not be, begun. */
  get failure(): string | null {
    return this._failure ?? this._unreadable;
  }

  get isBusy(): boolean {
    return this._isBusy;
  }

  get outcome(): IOutcome {
    return outcomeOf(
      this.subject,
      this._choice,
      this._parameters,
      this.trans,
      this._metrics
    );
  }

  get canRun(): boolean {
    return (
      !this._isLoading &&
      !this._isBusy &&
      this._unreadable === null &&
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
      void this.askOffering();
    }
  }

  /** Set one of the settings; `undefined` removes it, and what is empty without it. */
  setSetting(path: readonly string[], value: JSONValue | undefined): void {
    this.set({ settings: withValue(this._choice.settings, path, value) });
  }

  /** Take the sweep of last time. */
  takeOffered(): void {
    const parameters = { ...this._choice.parameters, ...this._offered };
    this._offered = {};
    this.set({ parameters });
  }

  get entries(): IChoice['parameters'] {
    return this._choice.parameters;
  }

  setEntry({ name }: IParameter, entry: IEntry | null): void {
    this.set({ parameters: withEntry(this.entries, name, entry) });
  }

  get sweepChoice(): ISweepChoice {
    return this._choice;
  }

  setSweepChoice(change: Partial<ISweepChoice>): void {
    this.set(change);
  }

  get errors(): IOutcome['errors'] {
    return this.outcome.errors;
  }

  /** Begin what is chosen; null, with `failure`, when it could not be. */
  async submit(): Promise<Begun | null> {
    this._isBusy = true;
    this._failure = null;
    this.touch();
    try {
      if (this._unsaved && this._savesFirst) {
        await this._unsaved.save();
        this._unsaved = undefined;
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
    window.clearTimeout(this._again);
    this._check.dispose();
    super.dispose();
  }

  /** A sweep costs as much as it has runs: nobody starts one by not looking. */
  private offerSweep(): void {
    const entries = Object.entries(this._choice.parameters);
    this._offered = Object.fromEntries(
      entries.filter(([, { several }]) => several)
    );
    const parameters = Object.fromEntries(
      entries.filter(([, { several }]) => !several)
    );
    this._choice = { ...this._choice, parameters };
  }

  private async load(): Promise<void> {
    const declared = this.loadParameters().catch(error => {
      // What cannot be read cannot be run; where and how can still be looked at.
      this._unreadable = sentenceOf(error);
      return [];
    });
    try {
      const [{ runtimes }, parameters, about] = await Promise.all([
        this.api.runtimes(),
        declared,
        this.api.about()
      ]);
      if (this.isDisposed) {
        return;
      }
      const local = ({ name }: IRuntime) => (name === 'local' ? 0 : 1);
      this._runtimes = [...runtimes].sort((a, b) => local(a) - local(b));
      this._isOpaque = parameters === null;
      this._parameters = parameters ?? [];
      const known = this._runtimes.map(({ name }) => name);
      if (!known.includes(this._choice.runtime)) {
        const runtime = known.includes(about.default_runtime)
          ? about.default_runtime
          : (known[0] ?? 'local');
        this._choice = { ...this._choice, runtime };
      }
      if (this._kernel === '') {
        // The notebook names none: the one that JupyterLab would start.
        const kernel = this._choice.settings.kernel ?? this.kernels[0];
        const settings = compact({ ...this._choice.settings, kernel });
        this._choice = { ...this._choice, settings: settings as JSONObject };
      }
      this._check.request();
      void this.look();
      void this.askOffering();
      this._timer = window.setInterval(() => void this.look(), LOOK);
    } catch (error) {
      this._failure = sentenceOf(error);
    }
    this._isLoading = false;
    this.touch();
  }

  /** The profiles and images for this runtime, once they are known. */
  get offering(): IOffering | null {
    return this._offering;
  }

  private async askOffering(): Promise<void> {
    const { runtime } = this;
    const found = await offeringOf(this.api, runtime?.name);
    if (runtime === this.runtime) {
      this._offering = found;
      this.touch();
    }
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
    if (this._files) {
      const found = await Promise.all(
        this._files.paths.map(async path => {
          const { parameters } = await this.api.discover({ path });
          return [path, parameters ?? []] as const;
        })
      );
      this._parametersOf = new Map(found);
      this.arrangeFiles();
      return this._parameters;
    }
    const { path, document, content } = this.subject;
    const known = document ?? content;
    if (known) {
      return declaredIn(known.parameters as JSONObject | undefined);
    }
    if (path !== null && isPipeline(path)) {
      const described = await this.api.describe({
        path
      });
      return declaredIn(described.parameters);
    }
    const { kind, kernel, parameters } = await this.api.discover({
      path: path ?? ''
    });
    this._kernel = kind === 'notebook' ? (kernel ?? '') : null;
    return parameters;
  }

  /** Make a pipeline of the files. */
  private arrangeFiles(): void {
    const { paths, isChain } = this._files!;
    const files = paths.map(path => ({
      path,
      parameters: this._parametersOf.get(path) ?? []
    }));
    const document = pipelineOf(files, isChain);
    this._subject = { ...this._subject, document };
    this._parameters = declaredIn(
      document.parameters as JSONObject | undefined
    );
  }

  private async check(): Promise<void> {
    const { request, errors } = this.outcome;
    const isAskable = this.runtime && this._unreadable === null;
    if (Object.keys(errors).length > 0 || !isAskable) {
      return;
    }
    try {
      const { problems, metrics } = await this.api.check(
        request.runtime ?? 'local',
        request
      );
      this._problems = problems;
      this._metrics = metrics;
    } catch (error) {
      this._problems = [
        { severity: 'error', code: 'check', message: sentenceOf(error) }
      ];
      if (isAway(error)) {
        window.clearTimeout(this._again);
        this._again = window.setTimeout(() => this._check.request(), AGAIN);
      }
    }
    this.touch();
  }

  private _again = 0;
  private _check: Coalesced;
  private _choice: IChoice;
  private _failure: string | null = null;
  private _files: { paths: readonly string[]; isChain: boolean } | null;
  private _isBusy = false;
  private _isLoading = true;
  private _isOpaque = false;
  private _kernel: string | null = null;
  private _metrics: IMetrics | null = null;
  private _overview: IOverview | null = null;
  private _offering: IOffering | null = null;
  private _parameters: IParameter[] = [];
  private _parametersOf: ReadonlyMap<string, readonly IParameter[]> = new Map();
  private _problems: IProblem[] = [];
  private _offered: Record<string, IEntry> = {};
  private _runtimes: IRuntime[] = [];
  private _unsaved: IUnsaved | undefined;
  private _savesFirst = true;
  private _subject: ISubject;
  private _timer = 0;
  /** Why the file cannot be read. */
  private _unreadable: string | null = null;
}
