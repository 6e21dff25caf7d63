import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IAttemptKey, IReplica, State } from '../../api';
import type { IConvectApi } from '../../tokens';
import {
  formatSize,
  hangs,
  StateIcon,
  stateLabel,
  translated,
  useKept,
  useModel,
  useTrans
} from '../../ui';
import { LogModel } from './log';
import { Log, useFollowing } from './logview';
import type { RunModel } from './model';
import type { ReplicasModel } from './ranks';
import type { OpenTerminal } from './shellbutton';
import { ShellButton } from './shellbutton';

import '../../../style/replicas.css';

/** The processes of a distributed step as a grid, the log of one of them beside it. */
export default function Replicas({
  model,
  openTerminal
}: {
  model: RunModel;
  /** Null when there are no terminals, or none where the processes run. */
  openTerminal: OpenTerminal | null;
}): JSX.Element | null {
  const { replicas, isShown, api } = model;
  useFollowing(replicas, isShown);
  return (
    replicas && (
      <Ranks model={replicas} api={api} isShown={isShown}>
        {rank =>
          openTerminal && (
            <ShellButton
              model={model}
              step={replicas.key.step}
              rank={rank}
              openTerminal={openTerminal}
            />
          )
        }
      </Ranks>
    )
  );
}

function Ranks(props: {
  model: ReplicasModel;
  api: IConvectApi;
  isShown: boolean;
  /** What can be done with a process that runs. */
  children: (rank: number) => React.ReactNode;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const { replicas, counts, key } = model;
  const [filter, setFilter] = React.useState<State | null>(null);
  const [wanted, setWanted] = useKept<number | null>('rank', null);
  const seen = replicas.filter(({ state }) => !filter || state === filter);
  const chosen =
    replicas.find(({ rank }) => rank === wanted) ?? replicas[0] ?? null;
  if (replicas.length === 0) {
    return (
      <div className="jp-Convect-hint">
        {model.error?.message ?? trans.__('No process has started yet.')}
      </div>
    );
  }
  return (
    <div className="jp-Convect-replicas">
      <div className="jp-Convect-replicaSide">
        <Counts counts={counts} filter={filter} onFilter={setFilter} />
        <Tiles
          replicas={seen}
          chosen={chosen?.rank ?? null}
          onChoose={setWanted}
        />
      </div>
      {chosen && (
        <div className="jp-Convect-replicaLog">
          <p className="jp-Convect-replicaHead">
            <StateIcon state={chosen.state} reason={chosen.reason} />
            <b>{trans.__('Rank %1', chosen.rank)}</b>{' '}
            {chosen.node && (
              <span className="jp-Convect-replicaNode">
                {trans.__('on %1', chosen.node)}
              </span>
            )}{' '}
            {chosen.gpu && (
              <span className="jp-Convect-replicaNode">
                {gpuName(chosen.gpu, trans)}
              </span>
            )}{' '}
            {chosen.rate && (
              <span className="jp-Convect-replicaNode">{chosen.rate}</span>
            )}{' '}
            <span className="jp-Convect-replicaNode">
              {usedText(chosen, trans)}
            </span>{' '}
            {chosen.reason
              ? translated(chosen.reason, trans)
              : stateLabel(trans, chosen.state)}{' '}
            {chosen.state === 'running' && props.children(chosen.rank)}
          </p>
          <ReplicaLog
            key={chosen.rank}
            api={props.api}
            attempt={key}
            rank={chosen.rank}
            isShown={props.isShown}
          />
        </div>
      )}
    </div>
  );
}

function Counts(props: {
  counts: Map<State, number>;
  filter: State | null;
  onFilter: (state: State | null) => void;
}): JSX.Element {
  const { counts, filter, onFilter } = props;
  const trans = useTrans();
  return (
    <div
      className="jp-Convect-stateCounts"
      role="group"
      aria-label={trans.__('Processes by state')}
    >
      {[...counts].map(([state, count]) => (
        <button
          key={state}
          type="button"
          className="jp-Convect-stateCount"
          data-state={state}
          aria-pressed={filter === state}
          onClick={() => onFilter(filter === state ? null : state)}
        >
          {stateLabel(trans, state)} <b>{count}</b>
        </button>
      ))}
    </div>
  );
}

const STEPS: { readonly [key: string]: number } = {
  ArrowLeft: -1,
  ArrowUp: -1,
  ArrowRight: 1,
  ArrowDown: 1,
  Home: -Infinity,
  End: Infinity
};

/** A GPU by its number, or by the beginning of its id. */
function gpuName(gpu: string, trans: TranslationBundle): string {
  return /^\d+$/.test(gpu)
    ? trans.__('GPU %1', gpu)
    : gpu.slice(0, 'GPU-'.length + 8);
}

/** What it uses of the machine, or used last. */
function usedText(replica: IReplica, trans: TranslationBundle): string {
  const { cpu, memory, gpu_load: load, gpu_memory: onGpu } = replica;
  return [
    cpu !== null && trans.__('CPU %1', Math.round(cpu * 10) / 10),
    memory !== null && formatSize(memory),
    load !== null && trans.__('GPU %1%', Math.round(load)),
    onGpu !== null && formatSize(onGpu)
  ]
    .filter(Boolean)
    .join(' · ');
}

/** One tile per rank; arrows go from one to the next. */
function Tiles(props: {
  replicas: readonly IReplica[];
  chosen: number | null;
  onChoose: (rank: number) => void;
}): JSX.Element {
  const { replicas, chosen, onChoose } = props;
  const trans = useTrans();
  const grid = React.useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    replicas.findIndex(({ rank }) => rank === chosen)
  );
  const onKeyDown = (event: React.KeyboardEvent) => {
    const step = STEPS[event.key];
    if (step !== undefined && replicas.length > 0) {
      event.preventDefault();
      const next = Math.min(replicas.length - 1, Math.max(0, at + step));
      onChoose(replicas[next].rank);
      (grid.current?.children[next] as HTMLElement | undefined)?.focus();
    }
  };
  return (
    <div
      ref={grid}
      className="jp-Convect-tiles"
      role="listbox"
      aria-label={trans.__('Processes')}
      onKeyDown={onKeyDown}
    >
      {replicas.map(({ rank, state, reason, node, gpu, rate, line }, index) => (
        <Tile
          key={rank}
          rank={rank}
          state={state}
          reason={reason}
          place={[node, gpu && gpuName(gpu, trans)].filter(Boolean).join(' · ')}
          rate={rate}
          line={line}
          isChosen={rank === chosen}
          isReachable={index === at}
          onChoose={onChoose}
        />
      ))}
    </div>
  );
}

/** Drawn again only when it changes: there may be hundreds. */
const Tile = React.memo(function Tile(props: {
  rank: number;
  state: State;
  reason: string | null;
  /** The node and the GPU, as far as they are known. */
  place: string;
  rate: string | null;
  line: string;
  isChosen: boolean;
  isReachable: boolean;
  onChoose: (rank: number) => void;
}): JSX.Element {
  const { rank, state, reason, place, rate, line } = props;
  const { isChosen, isReachable, onChoose } = props;
  return (
    <div
      className="jp-Convect-tile"
      role="option"
      data-state={state}
      data-hangs={hangs(state, reason) ? '' : undefined}
      data-tall={rate && place ? '' : undefined}
      aria-selected={isChosen}
      tabIndex={isReachable ? 0 : -1}
      title={[place, rate, line].filter(Boolean).join('\n')}
      onClick={() => onChoose(rank)}
    >
      <span className="jp-Convect-tileRank">
        <StateIcon state={state} reason={reason} />
        {rank}
        <span className="jp-Convect-replicaNode">{rate ?? place}</span>
      </span>
      {rate && place && <span className="jp-Convect-tileLine">{place}</span>}
      <span className="jp-Convect-tileLine">{line}</span>
    </div>
  );
});

/** The log of one rank, read while it is seen. */
function ReplicaLog(props: {
  api: IConvectApi;
  attempt: IAttemptKey;
  rank: number;
  isShown: boolean;
}): JSX.Element | null {
  const { api, attempt, rank, isShown } = props;
  const [isWhole, setWhole] = React.useState(false);
  const [log, setLog] = React.useState<LogModel | null>(null);
  const { run, step, attempt: number } = attempt;
  React.useEffect(() => {
    const key = { run, step, attempt: number };
    const made = new LogModel(api, key, isWhole, rank);
    setLog(made);
    return () => made.dispose();
  }, [api, run, step, number, rank, isWhole]);
  useFollowing(log, isShown);
  return (
    log && (
      <Log model={log} marks={[]} api={api} onReadAll={() => setWhole(true)} />
    )
  );
}
