import type { Event } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import type {
  IConvectApi,
  IRunPage,
  IRunQuery,
  IRunSummary,
  IRunView,
  ISweepSummary,
  State
} from '../../api';
import { ConvectError, RUN_EVENT, SWEEP_EVENT } from '../../api';
import { RunStore } from '../store';

/** A server in memory: its runs are set by the test, what it is asked is counted. */
export class FakeServer {
  constructor() {
    const events = { stream: this.stream } as never;
    this.store = new RunStore(this.api, events, 'never');
  }

  readonly asked: string[] = [];
  readonly runs = new Map<string, IRunSummary>();
  sweeps: ISweepSummary[] = [];
  /** Answers wait for this. */
  gate: Promise<void> | null = null;

  readonly stream = new Signal<object, Event.Emission>({});
  readonly api = {
    about: async () => ({ health: [], runtimes: [] }),
    listRuns: async (query: IRunQuery = {}): Promise<IRunPage> => {
      this.asked.push(query.id ? `named ${query.id.length}` : 'list');
      this.queries.push(query);
      const page = this.find(query);
      await this.gate;
      return page;
    },
    run: async (id: string): Promise<IRunView> => {
      this.asked.push(`run ${id}`);
      const run = this.runs.get(id);
      await this.gate;
      if (!run) {
        throw new ConvectError('There is no such run.', 404, 'missing');
      }
      const state = run.state;
      const step = { id: 's', state, reason: run.reason, attempts: [{}] };
      const plan = { name: id, steps: [{ id: 's' }] };
      return { ...run, plan, steps: { s: step } } as unknown as IRunView;
    },
    log: async () => ({
      text: 'one\ntwo\n\x1b[31mthree\x1b[0m\nfour\n',
      offset: 20,
      complete: true
    }),
    listSweeps: async () => {
      this.asked.push('sweeps');
      return { sweeps: this.sweeps, total: this.sweeps.length };
    },
    sweep: async (id: string) => {
      this.asked.push(`sweep ${id}`);
      const runs = [...this.runs.values()].filter(run => run.sweep === id);
      return { ...this.sweeps.find(sweep => sweep.id === id), runs };
    },
    stopRun: async (id: string) => {
      this.asked.push(`stop ${id}`);
    },
    stopSweep: async (id: string) => {
      this.asked.push(`stop sweep ${id}`);
    }
  } as unknown as IConvectApi;
  readonly queries: IRunQuery[] = [];
  readonly store: RunStore;

  /** Have a run, without a word to anybody. */
  put(id: string, state: State, facts: Partial<IRunSummary> = {}): IRunSummary {
    const before = this.runs.get(id);
    const run = {
      name: id,
      path: null,
      runtime: 'local',
      reason: null,
      created: 0,
      started: null,
      ended: null,
      parameters: {},
      metrics: {},
      labels: {},
      sweep: null,
      progress: 0,
      ...before,
      ...facts,
      id,
      state,
      seq: (before?.seq ?? 0) + 1
    } as unknown as IRunSummary;
    this.runs.set(id, run);
    return run;
  }

  /** Have it, and tell. */
  change(id: string, state: State, facts: Partial<IRunSummary> = {}): void {
    const { seq } = this.put(id, state, facts);
    this.tell(id, seq, state);
  }

  tell(run: string, seq: number, state: State | 'deleted'): void {
    this.stream.emit({ schema_id: RUN_EVENT, run, seq, state });
  }

  tellSweep(sweep: string): void {
    this.stream.emit({ schema_id: SWEEP_EVENT, sweep });
  }

  delete(id: string): void {
    this.runs.delete(id);
    this.tell(id, 99, 'deleted');
  }

  private find(query: IRunQuery): IRunPage {
    const all = [...this.runs.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
    const { id, state = [], sweep, path, text, limit = 50, offset = 0 } = query;
    const label = query.label?.[0]?.replace('=', '');
    const counts: Partial<Record<State, number>> = {};
    all.forEach(run => (counts[run.state] = (counts[run.state] ?? 0) + 1));
    const found = all.filter(
      run =>
        (!id || id.includes(run.id)) &&
        (state.length === 0 || state.includes(run.state)) &&
        (!sweep || (run.sweep ?? 'none') === sweep) &&
        (!path || run.path === path) &&
        (!label || label in run.labels) &&
        (!text || run.name.includes(text))
    );
    const runs = id ? found : found.slice(offset, offset + limit);
    return { runs, total: found.length, counts, exact: true };
  }
}
