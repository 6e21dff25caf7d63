import * as React from 'react';

import '../../style/cluster.css';

import type { IGpuOverview, IHolder, INodeOverview, IOverview } from '../api';
import { CommandIDs } from '../commands';
import type { Execute, IPageOptions } from '../ui';
import {
  Action,
  Failure,
  Page,
  runtimeLabel,
  SearchInput,
  translated,
  useAction,
  useKept,
  useModel,
  useTrans
} from '../ui';
import { Bar } from './bars';
import type { ClusterModel, IRuntimeState } from './model';
import { Queues } from './queues';
import { Hidden, Tile } from './tile';
import {
  amountText,
  idleText,
  kindLabel,
  offerTitle,
  matching,
  requestText,
  resourceLabel,
  summed
} from './words';

/** Nodes and holders that are drawn at first. */
const FIRST = 20;
const MORE = 100;

/** What there is, what is mine, and what could start now, in the main area. */
export class ClusterPage extends Page<ClusterModel> {
  constructor(model: ClusterModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-cluster');
    this.title.label = options.trans.__('Cluster');
  }

  protected get name(): string | null {
    return null;
  }

  protected content(execute: Execute): JSX.Element {
    return <Cluster model={this.model} execute={execute} />;
  }
}

function Cluster(props: {
  model: ClusterModel;
  execute: Execute;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  return (
    <>
      <Failure error={model.error} />
      {model.runtimes === null && !model.error && (
        <div className="jp-Convect-hint" aria-busy>
          {trans.__('Looking at it…')}
        </div>
      )}
      {model.runtimes?.map(state => (
        <Runtime key={state.name} state={state} {...props} />
      ))}
    </>
  );
}

function Runtime(props: {
  state: IRuntimeState;
  model: ClusterModel;
  execute: Execute;
}): JSX.Element {
  const { state, model, execute } = props;
  const { overview, problem, name } = state;
  const trans = useTrans();
  // One that cannot be used has told no name of its own.
  const named = state.displayName === name ? undefined : state.displayName;
  const label = runtimeLabel(trans, name, named);
  return (
    <section
      className="jp-Convect-runtime"
      aria-label={label}
      data-runtime={name}
    >
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{label}</h2>
          {overview?.namespace && (
            <span className="jp-Convect-titleState">
              {trans.__('namespace %1', overview.namespace)}
            </span>
          )}
        </div>
      </header>
      {problem !== null && (
        <div
          className="jp-Convect-message"
          data-severity={overview ? 'warning' : 'info'}
          role="status"
        >
          {translated(problem, trans)}
          {overview && ` ${trans.__('What is shown may be old.')}`}
        </div>
      )}
      {overview === null && problem === null && (
        <div className="jp-Convect-hint" aria-busy>
          {trans.__('Looking at it…')}
        </div>
      )}
      {overview && (
        <div className="jp-Convect-subjects">
          {overview.reading && (
            <div className="jp-Convect-message" role="status">
              {trans.__(
                'The pods of the cluster are being read: what is free is not known yet.'
              )}
            </div>
          )}
          {overview.notes.map(note => (
            <div key={note} className="jp-Convect-message" role="status">
              {translated(note, trans)}
            </div>
          ))}
          <Offers runtime={name} overview={overview} execute={execute} />
          <Gpus gpus={overview.gpus ?? []} />
          <Nodes runtime={name} overview={overview} />
          <Quotas overview={overview} />
          <Queues overview={overview} execute={execute} />
          <Holders
            runtime={name}
            overview={overview}
            model={model}
            execute={execute}
          />
        </div>
      )}
    </section>
  );
}

/** The largest request of each profile that would start at once. */
function Offers(props: {
  runtime: string;
  overview: IOverview;
  execute: Execute;
}): JSX.Element | null {
  const { runtime, overview, execute } = props;
  const trans = useTrans();
  if (overview.offers.length === 0) {
    return null;
  }
  return (
    <Tile title={trans.__('What could I start now?')}>
      <ul className="jp-Convect-offers">
        {overview.offers.map(offer => {
          const { title, settings, now, notes, node, sentence } = offer;
          const text = requestText(settings, trans);
          const isPossible = Object.keys(settings).length > 0;
          const name = offer.profile ?? offerTitle(title, trans);
          return (
            <li key={title} data-now={String(now)}>
              <strong>{name}</strong>
              <span className="jp-Convect-offerText">
                {isPossible
                  ? now === null
                    ? trans.__('perhaps %1', text)
                    : trans.__('up to %1', text)
                  : trans.__('nothing')}
                {node && runtime !== 'local' && (
                  <span className="jp-Convect-quiet">
                    {' '}
                    {trans.__('on %1', node)}
                  </span>
                )}
              </span>
              {isPossible && (
                <Action
                  label={trans.__('Run…')}
                  title={trans.__('Open the run dialog with %1', text)}
                  onClick={() =>
                    execute(CommandIDs.runAsPipeline, { runtime, settings })
                  }
                />
              )}
              {(sentence || notes) && (
                <span className="jp-Convect-quiet jp-Convect-offerWhy">
                  {sentence && translated(sentence, trans)}{' '}
                  <span className="jp-Convect-ownWords">{notes}</span>
                </span>
              )}
            </li>
          );
        })}
      </ul>
    </Tile>
  );
}

function Gpus({ gpus }: { gpus: readonly IGpuOverview[] }): JSX.Element | null {
  const trans = useTrans();
  if (gpus.length === 0) {
    return null;
  }
  return (
    <Tile title={trans.__('GPUs by type')}>
      {gpus.map(gpu => (
        <div
          key={[gpu.resource, gpu.type, gpu.sharing?.kind].join()}
          className="jp-Convect-gpu"
        >
          <Bar
            name={gpu.resource}
            label={gpu.type ?? gpu.resource}
            total={gpu.total}
            free={gpu.free}
          />
          <div className="jp-Convect-quiet">
            {[
              gpu.type && gpu.resource,
              gpu.largest_free !== null &&
                gpu.largest_free > 0 &&
                trans.__(
                  'up to %1 on one node (%2)',
                  amountText(gpu.resource, gpu.largest_free),
                  gpu.largest_node
                ),
              gpu.use !== null &&
                trans.__('%1% busy', Math.round(100 * gpu.use))
            ]
              .filter(Boolean)
              .join(' · ')}
          </div>
          {gpu.sharing && (
            <div className="jp-Convect-quiet">
              {translated(gpu.sharing.sentence, trans)}{' '}
              {gpu.sharing.cards !== null &&
                trans._n(
                  'There is only %1 physical GPU.',
                  'There are only %1 physical GPUs.',
                  gpu.sharing.cards
                )}
            </div>
          )}
        </div>
      ))}
    </Tile>
  );
}

function Nodes(props: { runtime: string; overview: IOverview }): JSX.Element {
  const { runtime, overview } = props;
  const trans = useTrans();
  const { nodes } = overview;
  const count = nodes?.length ?? 0;
  const [text, setText] = useKept(`${runtime} nodes`, '');
  const [most, setMost] = useKept(`${runtime} most nodes`, FIRST);
  const found = React.useMemo(() => matching(nodes ?? [], text), [nodes, text]);
  const totals = React.useMemo(() => summed(nodes ?? []), [nodes]);
  return (
    <Tile
      title={
        runtime === 'local'
          ? trans.__('This machine')
          : trans._n('%1 node', '%1 nodes', count)
      }
    >
      <Hidden overview={overview} parts={['nodes', 'pods']} />
      {count > 1 && (
        <div className="jp-Convect-sum">
          {totals.map(each => (
            <Bar key={each.name} {...each} />
          ))}
        </div>
      )}
      {count > FIRST && (
        <SearchInput
          label={trans.__('Search nodes')}
          value={text}
          onChange={setText}
        />
      )}
      <ul className="jp-Convect-nodes">
        {found.slice(0, most).map(node => (
          <Node key={node.name} node={node} />
        ))}
      </ul>
      {found.length > most && (
        <Action
          label={trans._n(
            'Show %1 more node',
            'Show %1 more nodes',
            Math.min(MORE, found.length - most)
          )}
          onClick={() => setMost(most + MORE)}
        />
      )}
    </Tile>
  );
}

const Node = React.memo(function Node({
  node
}: {
  node: INodeOverview;
}): JSX.Element {
  const trans = useTrans();
  return (
    <li data-node={node.name} data-ready={node.ready}>
      <div className="jp-Convect-nodeName">
        <strong>{node.name}</strong>
        {node.type && <span className="jp-Convect-quiet">{node.type}</span>}
        {node.closed && (
          <span className="jp-Convect-quiet">
            {translated(node.closed, trans)}
          </span>
        )}
      </div>
      {node.resources.map(each => (
        <Bar key={each.name} {...each} />
      ))}
    </li>
  );
}, sameNode);

function sameNode(
  before: { node: INodeOverview },
  after: { node: INodeOverview }
): boolean {
  return JSON.stringify(before.node) === JSON.stringify(after.node);
}

function Quotas({ overview }: { overview: IOverview }): JSX.Element | null {
  const trans = useTrans();
  const { quotas, namespace } = overview;
  if (namespace === null) {
    return null;
  }
  return (
    <Tile title={trans.__('Quota of namespace %1', namespace)}>
      <Hidden overview={overview} parts={['quotas']} />
      {quotas?.length === 0 && (
        <p className="jp-Convect-quiet">
          {trans.__('The namespace has no quota.')}
        </p>
      )}
      {quotas?.map(({ name, resource, used, total }) => (
        <Bar
          key={`${name} ${resource}`}
          name={resource}
          label={quotaLabel(name, resource, quotas.length > 1, trans)}
          total={total}
          free={Math.max(total - used, 0)}
        />
      ))}
    </Tile>
  );
}

function quotaLabel(
  name: string,
  resource: string,
  isOneOfMany: boolean,
  trans: ReturnType<typeof useTrans>
): string {
  const label = resourceLabel(resource, trans);
  const what = resource.startsWith('limits.')
    ? trans.__('%1 (limits)', label)
    : label;
  return isOneOfMany ? `${what} (${name})` : what;
}

function Holders(props: {
  runtime: string;
  overview: IOverview;
  model: ClusterModel;
  execute: Execute;
}): JSX.Element {
  const { runtime, overview, model, execute } = props;
  const trans = useTrans();
  const [most, setMost] = useKept(`${runtime} most holders`, FIRST);
  const holders = React.useMemo(
    () => [...overview.holders].sort((a, b) => Number(b.mine) - Number(a.mine)),
    [overview.holders]
  );
  return (
    <Tile title={trans.__('Who holds what')}>
      <Hidden overview={overview} parts={['own-pods']} />
      {holders.length === 0 && (
        <p className="jp-Convect-quiet">
          {overview.reading
            ? trans.__('Looking at it…')
            : trans.__('Nobody holds anything.')}
        </p>
      )}
      <ul className="jp-Convect-holders">
        {holders.slice(0, most).map((holder, index) => (
          <HolderRow
            key={keyOf(holder, index)}
            holder={holder}
            isCluster={overview.namespace !== null}
            model={model}
            execute={execute}
          />
        ))}
      </ul>
      {holders.length > most && (
        <Action
          label={trans._n(
            'Show %1 more',
            'Show %1 more',
            Math.min(MORE, holders.length - most)
          )}
          onClick={() => setMost(most + MORE)}
        />
      )}
    </Tile>
  );
}

function keyOf(holder: IHolder, index: number): string {
  const { kind, id, run, step, namespace, owner, name } = holder;
  return id ?? [kind, run, step, namespace, owner, name || index].join('/');
}

function HolderRow(props: {
  holder: IHolder;
  isCluster: boolean;
  model: ClusterModel;
  execute: Execute;
}): JSX.Element {
  const { holder, isCluster, model, execute } = props;
  const trans = useTrans();
  const [failure, act] = useAction(() => model.refresh());
  const { kind, name, count, run, owner, mine, namespace, node } = holder;
  const idle = idleText(holder.idle, trans);
  const shown = count > 1 ? trans.__('pods: %1', count) : name;
  return (
    <li data-kind={kind} data-mine={mine}>
      <span className="jp-Convect-tag">{kindLabel(kind, trans)}</span>
      {run && mine ? (
        <button
          type="button"
          className="jp-Convect-link"
          onClick={() => execute(CommandIDs.openRun, { run })}
        >
          {shown}
        </button>
      ) : (
        <span className="jp-Convect-holderName">{shown}</span>
      )}
      <span className="jp-Convect-held">
        {holder.resources
          .map(
            each =>
              `${resourceLabel(each.name, trans)} ${amountText(each.name, each.amount)}`
          )
          .join(' · ')}
      </span>
      {idle && (
        <span className="jp-Convect-idle" data-idle>
          {idle}
        </span>
      )}
      {holder.gpu_use !== null && (
        <span className="jp-Convect-quiet">
          {trans.__('%1% busy', Math.round(100 * holder.gpu_use))}
        </span>
      )}
      <span className="jp-Convect-quiet">
        {[owner, isCluster && namespace, isCluster && node]
          .filter(Boolean)
          .join(' · ')}
      </span>
      {mine && (run !== null || holder.id !== null) && (
        <Action
          label={trans.__('Give It Back')}
          title={giveBackTitle(kind, trans)}
          onClick={act(() => model.giveBack(holder))}
        />
      )}
      <Failure error={failure} />
    </li>
  );
}

function giveBackTitle(
  kind: IHolder['kind'],
  trans: ReturnType<typeof useTrans>
): string {
  switch (kind) {
    case 'run':
      return trans.__('Stop the run');
    case 'kernel':
      return trans.__('Shut the kernel down; its variables are lost');
    default:
      return trans.__('Stop the service');
  }
}
