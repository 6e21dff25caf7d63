import * as React from 'react';

import type { IOverview } from '../api';
import { useTrans } from '../ui';
import { Bar } from './bars';
import { Hidden, Tile } from './tile';
import { resourceLabel } from './words';

/** What the namespace may still ask for. */
export function Quotas({
  overview
}: {
  overview: IOverview;
}): JSX.Element | null {
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
