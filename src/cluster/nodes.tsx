import * as React from 'react';

import type { INodeOverview, IOverview } from '../api';
import { SearchInput, translated, useKept, useTrans } from '../ui';
import { Bar } from './bars';
import { FIRST, ShowMore } from './more';
import { Hidden, Tile } from './tile';
import { matching, summed } from './words';

/** What each node has and what of it is free. */
export function Nodes(props: {
  runtime: string;
  overview: IOverview;
}): JSX.Element {
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
      <ShowMore count={found.length} most={most} onChange={setMost} />
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
