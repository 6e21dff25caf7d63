import type { IAttemptKey, IReplica, State } from '../../api';
import type { IConvectApi } from '../../tokens';
import { isBad } from '../../ui/states';
import type { IPiece } from './tail';
import { Tail } from './tail';

/** The processes of a distributed step, asked for while somebody looks. */
export class ReplicasModel extends Tail {
  constructor(
    private readonly api: IConvectApi,
    readonly key: IAttemptKey
  ) {
    super();
  }

  /** Those that failed first, then by rank. */
  get replicas(): readonly IReplica[] {
    return this._replicas;
  }

  /** How many there are in each state. */
  get counts(): Map<State, number> {
    const counts = new Map<State, number>();
    for (const { state } of this._replicas) {
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    return counts;
  }

  protected async read(): Promise<IPiece> {
    const { replicas, complete } = await this.api.replicas(this.key);
    this._replicas = failedFirst(replicas);
    return { offset: 0, complete, grown: false };
  }

  private _replicas: IReplica[] = [];
}

/** Whether a command follows a training job of the cluster, which has ranks of its own. */
export function followsJob(command?: readonly string[]): boolean {
  return command?.slice(1, 3).join(' ') === 'training run';
}

/** In the order in which they failed; all others follow by rank. */
export function failedFirst(replicas: readonly IReplica[]): IReplica[] {
  const bad = replicas.filter(({ state }) => isBad(state));
  const good = replicas.filter(({ state }) => !isBad(state));
  const end = ({ ended }: IReplica) => ended ?? Infinity;
  bad.sort((a, b) => (end(a) === end(b) ? a.rank - b.rank : end(a) - end(b)));
  good.sort((a, b) => a.rank - b.rank);
  return [...bad, ...good];
}
