import { Token } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import type { ConvectApi, IPlan, IStep } from './api';
import type { RunStore } from './runs/store';

export type IConvectApi = ConvectApi;

export const IConvectApi = new Token<IConvectApi>(
  'jupyterlab-convect:IConvectApi',
  'A client of the REST interface: runtimes, runs, sweeps and pipelines.'
);

export type IRunStore = RunStore;

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
  update(steps: Record<string, IStep>, selected: string | null): void;
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
