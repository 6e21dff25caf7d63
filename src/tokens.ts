import type { ServerConnection } from '@jupyterlab/services';
import { Token } from '@lumino/coreutils';
import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

import type {
  IItemsQuery,
  IPlan,
  IRunQuery,
  IRunSummary,
  IRunView,
  ISweepSummary,
  ITrouble,
  State
} from './api';
import type { IOperations } from './api/schema';
import type { IObservable } from './ui/observable';

/** The REST interface; each method is an operation of `openapi.yaml`. */
export interface IConvectApi extends IOperations {
  readonly settings: ServerConnection.ISettings;
  /** The address of an operation, for what the browser asks by itself. */
  url<Name extends keyof IOperations>(
    name: Name,
    ...given: Parameters<IOperations[Name]>
  ): string;
}

export const IConvectApi = new Token<IConvectApi>(
  'jupyterlab-convect:IConvectApi',
  'A client of the REST interface: runtimes, runs, sweeps and pipelines.'
);

/** What became of a run: null where it was not known before, or is gone now. */
export interface IRunChange {
  id: string;
  before: IRunSummary | null;
  after: IRunSummary | null;
}

export type Counts = Partial<Record<State, number>>;

/** One run with its plan and its steps, for all who look at it. */
export interface IWatchedRun extends IObservable {
  readonly id: string;
  /** Null until the server has answered. */
  readonly view: IRunView | null;
  readonly error: unknown;
  readonly isDeleted: boolean;
  /** The items of a loop to ask for with the run, so that a page of them costs no request. */
  items: (() => IItemsQuery | null) | null;
  /** One of those who hold it begins to look, or looks away: then nothing is asked for them. */
  look(isLooking: boolean): void;
  /** Call it once for each `watch`. */
  release(isLooking?: boolean): void;
}

/** The one copy of every run that somebody looks at, over all runtimes. */
export interface IRunStore extends IObservable {
  readonly api: IConvectApi;
  /** When this page began to listen, by the clock of the browser, in milliseconds. */
  readonly began: number;
  /** Runs that have not ended, the newest first; when there are very many, not all of them. */
  readonly live: readonly IRunSummary[];
  readonly liveCount: number;
  /** How many runs there are of each state, those of sweeps too. */
  readonly counts: Counts;
  /** The newest first; null until somebody has asked for them. */
  readonly sweeps: readonly ISweepSummary[] | null;
  /** Why the server gave no answer when it was last asked; null when it did. */
  readonly trouble: unknown;
  readonly isUnreachable: boolean;
  /** What of the server does not work now. */
  readonly troubles: readonly ITrouble[];
  /** More is known of some runs, or they are gone. */
  readonly runsChanged: ISignal<IRunStore, readonly IRunChange[]>;
  /** More is known of the sweeps. */
  readonly sweepsChanged: ISignal<IRunStore, void>;
  /** Time to ask again for everything that is shown, lest an event was missed. */
  readonly healing: ISignal<IRunStore, void>;
  /** What is known of a run. */
  summary(id: string): IRunSummary | undefined;
  isLive(id: string): boolean;
  /**
   * Keep a run up to date until what is returned is released, as often as it was asked
   * for; without `isLooking` only once somebody looks.
   */
  watch(id: string, isLooking?: boolean): IWatchedRun;
  /** Ask for what lists show of a run, unless it is known. */
  learn(id: string): void;
  /** Take over what somebody was told of runs, with the counts of all runs if they came with it. */
  take(runs: readonly IRunSummary[], counts?: Counts): void;
  /** Ask for what is going on now. */
  refresh(): void;
  /** Ask for the list of sweeps. */
  refreshSweeps(): void;
  /** All runs that a query finds, however many they are. */
  all(query: IRunQuery): Promise<IRunSummary[]>;
  /** Stop everything that goes on; a sweep as a whole, so that it makes no more runs. */
  stopAll(): Promise<void>;
  /** Say that a run, or a sweep, is shown somewhere while `isVisible` says so. */
  shows(id: string, isVisible: () => boolean): IDisposable;
  /** Somebody who looks at the page sees this run, or sweep. */
  isOnScreen(id: string): boolean;
}

export const IRunStore = new Token<IRunStore>(
  'jupyterlab-convect:IRunStore',
  'The one copy of every run over all runtimes, and what goes on now.'
);

/** What somebody has just begun. */
export interface IBegun {
  kind: 'run' | 'sweep';
  id: string;
  name: string;
}

/** Opens what the runs of this server have to show. */
export interface IRunsOpener {
  /**
   * Show what has just begun, as the settings say: its page, beside what is looked
   * at, or a notice; nothing with `isShown`, when somebody shows it already.
   */
  showBegun(begun: IBegun, options?: { isShown?: boolean }): Promise<void>;
  openRun(id: string, at?: { step?: string; attempt?: number }): Promise<void>;
  openSweep(id: string): Promise<void>;
  compare(ids: string[]): Promise<void>;
}

export const IRunsOpener = new Token<IRunsOpener>(
  'jupyterlab-convect:IRunsOpener',
  'Opens the page of a run or a sweep, or compares runs.'
);

/** A picture of a plan that shows what each step is doing. */
export interface IPlanView {
  readonly widget: Widget;
  /** Show these states, and which step is looked at; called whenever one of them changes. */
  update(
    run: Pick<IRunView, 'steps' | 'groups'>,
    selected: string | null
  ): void;
}

export interface IPlanViewFactory {
  /** Loads the canvas on first use. */
  create(
    plan: IPlan,
    options: { onSelect: (step: string) => void }
  ): Promise<IPlanView>;
}

export const IPlanViewFactory = new Token<IPlanViewFactory>(
  'jupyterlab-convect:IPlanViewFactory',
  'Draws a plan as a graph, read only, with the state of each step.'
);
