import * as React from 'react';

import { useTrans } from '../ui';
import { amountText, resourceLabel } from './words';

/** How much of something is held and free, as a bar and in words. */
export function Bar(props: {
  name: string;
  label?: string;
  total: number;
  /** Null where nobody knows. */
  free: number | null;
  /** How much is in use, where that is measured. */
  used?: number | null;
}): JSX.Element {
  const { name, total, free, used } = props;
  const trans = useTrans();
  const label = props.label ?? resourceLabel(name, trans);
  const held = free === null ? null : Math.max(total - free, 0);
  const percent = (value: number) =>
    `${Math.min(100, total > 0 ? (100 * value) / total : 0)}%`;
  const text =
    free === null
      ? trans.__('%1 in all', amountText(name, total))
      : trans.__(
          '%1 of %2 free',
          amountText(name, free),
          amountText(name, total)
        );
  const inUse =
    used === null || used === undefined
      ? null
      : trans.__('%1 actually used', amountText(name, used));
  return (
    <div
      className="jp-Convect-meter"
      data-resource={name}
      data-unknown={held === null}
      title={inUse ?? undefined}
    >
      <span className="jp-Convect-meterName">{label}</span>
      <span className="jp-Convect-meterTrack" aria-hidden>
        {held !== null && (
          <span
            className="jp-Convect-meterHeld"
            data-full={held >= total}
            style={{ width: percent(held) }}
          />
        )}
        {used !== null && used !== undefined && (
          <span
            className="jp-Convect-meterUsed"
            style={{ insetInlineStart: percent(used) }}
          />
        )}
      </span>
      <span className="jp-Convect-meterText">
        {text}
        {inUse && <span className="jp-Convect-meterInUse"> · {inUse}</span>}
      </span>
    </div>
  );
}
