import type { IHolder, IOverview, IRuntime } from '../api';
import { ConvectError, sentenceOf } from '../api';
import type { IConvectApi } from '../tokens';
import { ReadModel } from '../ui/reading';

/** How often to look while somebody does, in milliseconds. */
const PAUSE = 1000;

/** One runtime, and what it says of itself. */
export interface IRuntimeState {
  name: string;
  displayName: string;
  /** Null until it has answered. */
  overview: IOverview | null;
  /** Why it cannot be asked. */
  problem: string | null;
}

/** This machine and each cluster, read again and again while somebody looks. */
export class ClusterModel extends ReadModel {
  constructor(readonly api: IConvectApi) {
    super(PAUSE);
  }

  /** Null until the server has said which there are. */
  runtimes: readonly IRuntimeState[] | null = null;

  /** Stop a run, a service or a kernel of one's own, and look again. */
  async giveBack(holder: IHolder): Promise<void> {
    const { kind, run, id } = holder;
    if (
      kind === 'run' ||
      kind === 'service' ||
      kind === 'kernel' ||
      kind === 'dask'
    ) {
      await this.api.giveBack({ kind, id: (kind === 'run' ? run : id) ?? '' });
    }
    this.refresh();
  }

  protected async load(): Promise<void> {
    if (this.runtimes === null) {
      const { runtimes } = await this.api.runtimes();
      this.runtimes = runtimes.map(stateOf).sort(localFirst);
      this.touch();
    }
    for (const { name } of this.runtimes) {
      if (!this._looking.has(name)) {
        this._looking.add(name);
        void this.look(name).finally(() => this._looking.delete(name));
      }
    }
  }

  /** One that does not answer holds up no other, and keeps what was last known of it. */
  private async look(runtime: string): Promise<void> {
    let change: Partial<IRuntimeState>;
    try {
      const overview = await this.api.top(runtime);
      change = { overview, problem: null };
    } catch (error) {
      if (error instanceof ConvectError && error.code === 'no-capacity') {
        // It is none of the places that this page is about.
        this.runtimes = (this.runtimes ?? []).filter(
          ({ name }) => name !== runtime
        );
        this.touch();
        return;
      }
      change = { problem: sentenceOf(error) };
    }
    this.runtimes = (this.runtimes ?? []).map(each =>
      each.name === runtime ? { ...each, ...change } : each
    );
    this.touch();
  }

  /** Those that have been asked and have not answered yet. */
  private _looking = new Set<string>();
}

function stateOf({ name, display_name }: IRuntime): IRuntimeState {
  return { name, displayName: display_name, overview: null, problem: null };
}

function localFirst(a: IRuntimeState, b: IRuntimeState): number {
  const rank = ({ name }: IRuntimeState) => (name === 'local' ? 0 : 1);
  return rank(a) - rank(b) || a.name.localeCompare(b.name);
}
