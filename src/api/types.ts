/**
 * What the REST interface speaks, as `docs/rest.md` describes it.
 */
import type { JSONSchema7 } from 'json-schema';
import type {
  JSONObject,
  JSONValue,
  ReadonlyJSONObject,
  ReadonlyJSONValue
} from '@lumino/coreutils';

import type { AnyNumber } from './numbers';

export type State =
  | 'waiting'
  | 'queued'
  | 'starting'
  | 'running'
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'skipped'
  | 'cached'
  | 'lost';

export type Feature =
  | 'image'
  | 'cpu'
  | 'memory'
  | 'gpu'
  | 'shared_memory'
  | 'ephemeral_storage'
  | 'volumes'
  | 'secrets'
  | 'kubernetes'
  | 'isolation'
  | 'shell';

export interface IRuntime {
  name: string;
  display_name: string;
  features: Feature[];
  options_schema: JSONSchema7;
  /** Why it cannot be used. */
  problem: string | null;
}

export interface IAbout {
  version: string;
  runtimes: Omit<IRuntime, 'options_schema'>[];
  default_runtime: string;
  /** Where the command line is. */
  command: string;
  /** What does not work now and is tried again. */
  health: ITrouble[];
  installed: Record<string, string | null>;
}

/** Something of the server that does not work now. */
export interface ITrouble {
  name: string;
  /** Seconds since 1970. */
  since: number;
  sentence: string;
  tries: number;
}

/** What there is and what of it is free, as far as one may know; null stands for unknown. */
export interface IOverview {
  namespace: string | null;
  nodes:
    | {
        name: string;
        ready: boolean;
        /** Of its GPUs. */
        type: string | null;
        resources: { name: string; total: number; free: number | null }[];
      }[]
    | null;
  gpus:
    | {
        resource: string;
        type: string | null;
        total: number;
        free: number | null;
        largest_free: number | null;
        largest_node: string;
      }[]
    | null;
  unknown: string[];
}

export interface IProblem {
  severity: 'error' | 'warning' | 'info';
  code: string;
  message: string;
  node?: string | null;
  path?: (string | number)[];
  hint?: string | null;
}

export type ParameterType =
  'string' | 'integer' | 'number' | 'boolean' | 'array' | 'object';

export interface IParameter {
  name: string;
  /** Null when it cannot be known. */
  type: ParameterType | null;
  default: JSONValue;
  /** The default as it stands in the file, null when there is none. */
  source: string | null;
  help: string | null;
  choices: JSONValue[];
  required: boolean;
}

/** What a notebook or a script tells about itself. */
export interface IDiscovery {
  kind: 'notebook' | 'script';
  language: string | null;
  kernel: string | null;
  /** Null when they cannot be known. */
  parameters: IParameter[] | null;
  outputs: string[] | null;
  env: string[];
  modules: string[];
}

/** What is known of the numbers that something reports, before it runs. */
export interface IMetrics {
  names: string[];
  /** Nothing else can be reported. */
  complete: boolean;
  /** By what a sweep tells the best run when nobody says, `max:accuracy`. */
  best: string | null;
}

export interface ISelection {
  mode?: 'all' | 'only' | 'from' | 'upto' | 'failed';
  node?: string | null;
}

/** What is asked; a clone starts from here. */
export interface IRequest {
  path?: string | null;
  document?: JSONObject | null;
  runtime?: string;
  options?: JSONObject;
  name?: string | null;
  parameters?: JSONObject;
  settings?: JSONObject;
  labels?: Record<string, string>;
  select?: ISelection;
  use_cache?: boolean;
  of?: string | null;
  sweep?: string | null;
}

export interface IProgress {
  cell: number;
  cells: number;
  elapsed: number;
  expected?: number | null;
}

export interface IAttempt {
  attempt: number;
  state: State;
  reason?: string | null;
  detail?: string | null;
  started?: number | null;
  ended?: number | null;
  handle?: ReadonlyJSONValue;
}

export interface IStep {
  id: string;
  state: State;
  reason?: string | null;
  started?: number | null;
  ended?: number | null;
  attempts: IAttempt[];
  progress?: IProgress | null;
  /** Those in effect, defaults included. */
  parameters: ReadonlyJSONObject;
  outputs: ReadonlyJSONObject;
  metrics: Record<string, AnyNumber>;
  cache?: string | null;
  source?: string | null;
  /** What a reader of the result should know, a sentence each. */
  notices?: string[];
  /** How many files it created, changed or deleted. */
  made?: number;
}

export interface IPlanStep {
  id: string;
  kind: 'notebook' | 'script' | 'command' | 'component';
  name: string;
  after?: string[];
  path?: string | null;
  digest?: string | null;
  command?: string[];
  component?: string | null;
  parameters?: ReadonlyJSONObject;
  defaults?: ReadonlyJSONObject;
  computed?: Record<string, string>;
  env?: Record<string, string>;
  image?: string | null;
  kernel?: string | null;
  resources?: ReadonlyJSONObject;
  outputs?: string[];
  timeout?: number | null;
  cache?: boolean;
  [property: string]: unknown;
}

export interface IPlan {
  name: string;
  steps: IPlanStep[];
  path?: string | null;
  parameters?: ReadonlyJSONObject;
}

export interface IRunSummary {
  id: string;
  name: string;
  path: string | null;
  runtime: string;
  state: State;
  reason: string | null;
  created: number;
  started: number | null;
  ended: number | null;
  user: string | null;
  /** Those in effect: first those that were given, then defaults. */
  parameters: ReadonlyJSONObject;
  /** Parameters that nobody gave a value. */
  defaults: string[];
  /** Code behind defaults whose values are not known. */
  computed: Record<string, string>;
  metrics: Record<string, AnyNumber>;
  labels: Record<string, string>;
  note: string;
  sweep: string | null;
  steps_total: number;
  steps_done: number;
  /** From 0 to 1. */
  progress: number;
  /** Grows with every change of the run. */
  seq: number;
}

export interface IGit {
  commit: string;
  branch?: string | null;
  /** Null where it took too long to tell. */
  dirty?: boolean | null;
  /** The digest under which it is kept how the files differ from the commit. */
  difference?: string | null;
}

/** Python and all that is installed there. */
export interface IEnvironment {
  python: string;
  implementation: string;
  platform: string;
  /** Version by name; with `@` and its origin if it is from no index. */
  packages: Record<string, string>;
}

/** By what a step was executed. */
export interface IStepEnvironment {
  digest: string | null;
  interpreter: string | null;
  kernel: string | null;
  /** Where it is no Python. */
  language: string | null;
  host: {
    name?: string;
    system?: string;
    machine?: string;
    cpus?: number | null;
    memory?: number;
    gpus?: string[];
  };
  /** As the node resolved it. */
  image: string | null;
  node: string | null;
}

/** How files differed from the commit. */
export interface IGitDifference {
  text: string;
  cut: boolean;
  untracked: string[];
  untracked_cut: boolean;
}

/** What a run was executed with; a step is there a moment after its end. */
export interface IRunEnvironment {
  git:
    (Omit<IGit, 'difference'> & { difference: IGitDifference | null }) | null;
  steps: Record<string, IStepEnvironment>;
  /** By digest. */
  environments: Record<string, IEnvironment>;
}

export interface IRunView extends IRunSummary {
  /** Somebody has asked to stop it. */
  stopping: boolean;
  plan: IPlan;
  request: IRequest;
  git: IGit | null;
  /** What came of putting the files that it made into the project. */
  files?: IPutFiles | null;
  steps: Record<string, IStep>;
}

export interface IRunQuery {
  /** These runs alone, with the counts of all. */
  id?: string[];
  state?: State[];
  name?: string;
  runtime?: string;
  label?: string;
  text?: string;
  path?: string;
  sweep?: string;
  since?: number;
  until?: number;
  sort?: string;
  limit?: number;
  offset?: number;
}

export interface IRunPage {
  runs: IRunSummary[];
  total: number;
  counts: Partial<Record<State, number>>;
  /** False when there are more than were counted. */
  exact?: boolean;
}

export interface ILogChunk {
  text: string;
  /** Where to go on reading, in bytes. */
  offset: number;
  /** The step has ended and this chunk reaches the end. */
  complete: boolean;
}

/** One line of what a step did; see `docs/architecture.md` for the types. */
export interface IStepEvent {
  time: number;
  type: string;
  [property: string]: ReadonlyJSONValue | undefined;
}

export interface IEventChunk {
  events: IStepEvent[];
  offset: number;
  complete: boolean;
}

/** Paths that are in the project, and those that stayed with the run, with the reason. */
export interface IPutFiles {
  put: string[];
  kept: Record<string, string>;
}

/** A file that a step made or declared. */
export interface IMadeFile {
  path: string;
  /** Null for a declared output that is not known to have changed. */
  change: 'created' | 'changed' | 'deleted' | null;
  size?: number;
  digest?: string | null;
  step: string;
  attempt: number;
  /** Whether its content is still with the run. */
  kept: boolean;
  /** Where its content is served, below the attempt; null when it cannot be. */
  file: string | null;
}

/** The files of a run, and what became of them. */
export interface IMadeFiles extends IPutFiles {
  /** The folder that the paths start from. */
  project: string | null;
  files: IMadeFile[];
}

/** A source that is not what a run executed any more; null is a file that is not there. */
export interface ISourceChange {
  path: string;
  before: string | null;
  after: string | null;
}

/** Which files a run that is repeated executes: as they are now, or as they were. */
export type Version = 'today' | 'run';

/** The values that one parameter of a sweep takes. */
export type Axis =
  | JSONValue[]
  | { from: number; to: number; step: number }
  | { min: number; max: number; log?: boolean; type?: 'integer' | 'number' };

export interface ISweepPoints {
  space: Record<string, Axis>;
  mode: 'grid' | 'random' | 'list';
  samples?: number;
}

export interface ISweepRequest extends ISweepPoints {
  request: IRequest;
  concurrency?: number;
  /** Which run is the best, e.g. `max:accuracy`. */
  select?: string;
}

export interface ISweepSummary {
  id: string;
  name: string;
  path: string | null;
  runtime: string;
  state: State;
  created: number;
  ended: number | null;
  space: Record<string, Axis>;
  mode: ISweepPoints['mode'];
  select: string | null;
  counts: Partial<Record<State, number>>;
  total: number;
  done: number;
  /** The id of the best run so far. */
  best: string | null;
}

export interface ISweepView extends ISweepSummary {
  request: IRequest;
  runs: IRunSummary[];
  /** Sources that are not what they were when it was submitted; runs take those of then. */
  changed?: string[];
}

/** What the runs of the server say when they change. */
export interface IRunEvent {
  run: string;
  seq: number;
  state: State | 'deleted';
}

export const RUN_EVENT = 'https://events.jupyterlab-convect.dev/run/v1';
export const SWEEP_EVENT = 'https://events.jupyterlab-convect.dev/sweep/v1';
