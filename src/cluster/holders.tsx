import * as React from 'react';

import type { IHolder, IOverview } from '../api';
import { CommandIDs } from '../commands';
import type { Execute } from '../ui';
import { Action, Failure, useAction, useKept, useTrans } from '../ui';
import type { ClusterModel } from './model';
import { FIRST, ShowMore } from './more';
import { Hidden, Tile } from './tile';
import { amountText, idleText, kindLabel, resourceLabel } from './words';

/** Who holds what, mine first, with a way to give it back. */
export function Holders(props: {
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
      <ShowMore count={holders.length} most={most} onChange={setMost} />
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
    case 'dask':
      return trans.__('Stop the Dask cluster');
    default:
      return trans.__('Stop the service');
  }
}
