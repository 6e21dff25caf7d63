import { Signal } from '@lumino/signaling';

import type { IRunEvent, IRunSummary, State } from '../../api';
import type { Ending } from '../endings';
import { Endings } from '../endings';
import type { RunsModel } from '../model';

/** Runs whose states are set by the test, and what is told of their ends. */
class World {
  constructor() {
    const model = {
      api: {
        run: async (id: string) => this.view(id),
        sweep: async (id: string) => ({
          name: id,
          runs: Object.keys(this.states)
            .filter(run => this.sweepOf(run) === id)
            .map(run => this.view(run))
        }),
        logEnd: async () => ({
          text: 'one\ntwo\n\x1b[31mthree\x1b[0m\nfour\n',
          offset: 20,
          complete: true
        })
      },
      live: [] as IRunSummary[],
      runChanged: new Signal<object, IRunEvent>(this),
      changed: new Signal<object, void>(this)
    };
    this.model = model;
    new Endings(model as unknown as RunsModel).ended.connect((_, ending) => {
      this.told.push(ending);
    }, this);
  }

  readonly told: Ending[] = [];
  states: Record<string, State> = {};

  async change(id: string, state: State): Promise<void> {
    this.states[id] = state;
    this.model.runChanged.emit({ run: id, seq: 1, state });
    await new Promise(resolve => setTimeout(resolve, 0));
  }

  /** The list of live runs, as the slow question finds it. */
  async heal(): Promise<void> {
    this.model.live = Object.keys(this.states)
      .filter(id => this.states[id] === 'running')
      .map(id => this.view(id));
    this.model.changed.emit();
    await new Promise(resolve => setTimeout(resolve, 0));
  }

  private sweepOf(id: string): string | null {
    return id.includes('/') ? id.split('/')[0] : null;
  }

  private view(id: string): IRunSummary {
    const state = this.states[id];
    const step = { id: 's', state, reason: 'It broke.', attempts: [{}] };
    return {
      id,
      name: id,
      state,
      reason: 's failed: It broke.',
      sweep: this.sweepOf(id),
      plan: { steps: [{ id: 's' }] },
      steps: { s: step }
    } as unknown as IRunSummary;
  }

  private model: {
    live: IRunSummary[];
    runChanged: Signal<object, IRunEvent>;
    changed: Signal<object, void>;
  };
}

describe('Endings', () => {
  it('tells the end of what was seen going on, once', async () => {
    const world = new World();
    await world.change('a', 'running');
    await world.change('a', 'succeeded');
    await world.change('a', 'succeeded');
    await world.change('old', 'succeeded');
    expect(world.told).toMatchObject([{ id: 'a', state: 'succeeded' }]);
  });

  it('says why it failed, with the last lines, without colours', async () => {
    const world = new World();
    await world.change('a', 'running');
    await world.change('a', 'failed');
    expect(world.told[0]).toMatchObject({
      step: null,
      reason: 'It broke.',
      lines: ['two', 'three', 'four']
    });
  });

  it('finds out by asking when an event was missed', async () => {
    const world = new World();
    world.states.a = 'running';
    await world.heal();
    world.states.a = 'cancelled';
    await world.heal();
    expect(world.told).toMatchObject([{ id: 'a', state: 'cancelled' }]);
  });

  it('tells a sweep when its last run has ended', async () => {
    const world = new World();
    await world.change('sweep/1', 'running');
    await world.change('sweep/2', 'running');
    await world.change('sweep/1', 'failed');
    expect(world.told).toEqual([]);
    await world.change('sweep/2', 'succeeded');
    expect(world.told).toMatchObject([
      { kind: 'sweep', id: 'sweep', state: 'succeeded' }
    ]);
  });
});
