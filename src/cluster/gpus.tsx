import * as React from 'react';

import type { IGpuOverview } from '../api';
import { translated, useTrans } from '../ui';
import { Bar } from './bars';
import { Tile } from './tile';
import { amountText } from './words';

/** The GPUs of all nodes by type, how they are shared, and how busy they are. */
export function Gpus({
  gpus
}: {
  gpus: readonly IGpuOverview[];
}): JSX.Element | null {
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
