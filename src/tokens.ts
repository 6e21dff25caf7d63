import { Token } from '@lumino/coreutils';
import type { Widget } from '@lumino/widgets';

import type { ConvectApi, IPlan, IStep } from './api';
import type { RunsModel } from './runs/model';

export type IConvectApi = ConvectApi;

export const IConvectApi = new Token<IConvectApi>(
  'jupyterlab-convect:IConvectApi',
  'A client of the REST interface: runtimes, runs, sweeps and pipelines.'
);

export type IRunsModel = RunsModel;

export const IRunsModel = new Token<IRunsModel>(
  'jupyterlab-convect:IRunsModel',
  'What is going on now over all runtimes, and a signal for every change.'
);

/** Opens what the runs of this server have to show. */
export interface IRunsOpener {
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
  /** Show these states; called whenever one of them changes. */
  update(steps: Record<string, IStep>): void;
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
