/** What the REST interface speaks, by the names that are used here; see `docs/rest.md`. */
import type { JSONValue } from '@lumino/coreutils';

import type { Components, IOperations } from './schema';

type Schemas = Components['schemas'];

export type State = Schemas['State'];
export type IRuntime = Schemas['Runtime'];
export type IAbout = Schemas['About'];
export type ITrouble = Schemas['Trouble'];
export type IConnectionTest = Schemas['ConnectionTest'];
export type IOthersRun = Schemas['OthersRun'];
export type IOthersRunView = Schemas['OthersRunView'];
export type IOverview = Schemas['Overview'];
export type INodeOverview = Schemas['NodeOverview'];
export type IGpuOverview = Schemas['GpuOverview'];
export type IQueueOverview = Schemas['QueueOverview'];
export type IWaitRange = NonNullable<Schemas['WaitRange']>;
export type IHolder = Schemas['Holder'];
export type IOffering = Schemas['Offering'];
export type IProfile = IOffering['profiles'][number];
export type IProblem = Schemas['Problem'];
export type IParameter = Schemas['Parameter'];
export type ParameterType = NonNullable<IParameter['type']>;
export type IDiscovery = Schemas['Discovery'];
export type IMetrics = Schemas['Metrics'];
export type ISelection = Schemas['Selection'];
export type IAttempt = Schemas['AttemptState'];
export type IStep = Schemas['StepState'];
export type IPlanStep = Schemas['PlanStep'];
export type IPlan = Schemas['Plan'];
export type IPlanGroup = NonNullable<IPlan['groups']>[number];
export type IGroup = Schemas['GroupState'];
export type ILoopItems = Schemas['LoopItems'];
export type ILoopItem = ILoopItems['page'][number];

/** The loop whose items are asked for with a run, and which of them. */
export type IItemsQuery = NonNullable<Parameters<IOperations['run']>[1]>;
export type IRunSummary = Schemas['RunSummary'];
export type IRunPage = Schemas['RunPage'];
export type IGit = NonNullable<Schemas['Git']>;
export type IGitDifference = NonNullable<Schemas['GitDifference']>;
export type IEnvironment = Schemas['Environment'];
export type IStepEnvironment = Schemas['StepEnvironment'];
export type IRunEnvironment = Schemas['RunEnvironment'];
export type IReplica = Schemas['Replica'];
export type IStepEvent = Schemas['StepEvent'];
export type IManifest = Schemas['Manifest'];
export type IMadeFile = Schemas['MadeFile'];
export type IMadeFiles = Schemas['MadeFiles'];
export type ISourceChange = Schemas['SourceChange'];
export type ISweepSummary = Schemas['SweepSummary'];
export type ITrainingCheck = Schemas['TrainingCheck'];
export type ITrainingField = Schemas['TrainingField'];
export type ITrainingJob = Schemas['TrainingJob'];

/** A step of which no more is known than this. */
export function stepOf(
  known: Pick<IStep, 'id' | 'state'> & Partial<IStep>
): IStep {
  return {
    reason: null,
    started: null,
    ended: null,
    attempts: [],
    progress: null,
    parameters: {},
    outputs: {},
    metrics: {},
    cache: null,
    source: null,
    ...known
  };
}

/** What is asked; a clone starts from here. */
export type IRequest = Schemas['RequestBody'] & { sweep?: string | null };
export type IRunView = Schemas['RunView'];
export type ISweepRequest = Schemas['SweepBody'];
export type IEndpoint = Schemas['EndpointView'];
export type IService = Schemas['ServiceView'];
export type IDaskCluster = Schemas['DaskCluster'];
export type IDaskOption = Schemas['DaskOption'];
export type IDaskOverview = Schemas['DaskOverview'];
export type ISweepView = Schemas['SweepView'];

/** Which files a run that is repeated executes: as they are now, or as they were. */
export type Version = NonNullable<Schemas['RerunBody']['version']>;

export type ICatalogs = Schemas['Catalogs'];
export type ICatalog = Schemas['CatalogView'];
export type IReadingError = NonNullable<Schemas['ReadingError']>;
export type ICatalogEntry = Schemas['ComponentSummary'];

export interface IContainer {
  image: string;
  command?: JSONValue[];
  args?: JSONValue[];
  env?: { [name: string]: JSONValue };
}

/** A complete definition, as pipelines embed it; what has its default is left out. */
export interface IDefinition {
  name: string;
  container?: IContainer;
  graph?: { components?: { [key: string]: IDefinition } };
  [key: string]: unknown;
}

/** The values that one parameter of a sweep takes. */
export type Axis =
  | JSONValue[]
  | { from: number; to: number; step: number }
  | { min: number; max: number; log?: boolean; type?: 'integer' | 'number' };

export type Space = Record<string, Axis>;

/** Which runs, as `GET runs` takes it. */
export type IRunQuery = NonNullable<Parameters<IOperations['listRuns']>[0]>;

/** What the runs of the server say when they change. */
export interface IRunEvent {
  run: string;
  seq: number;
  state: State | 'deleted';
}

export const RUN_EVENT = 'https://events.jupyterlab-convect.dev/run/v1';
export const SWEEP_EVENT = 'https://events.jupyterlab-convect.dev/sweep/v1';
