import * as React from 'react';

import type { State } from '../api';
import { useTrans } from './hooks';
import { hangs, stateLabel } from './states';

/** Paths in a box of 16 by 16, drawn as strokes. */
const SHAPES: Record<State, string[]> = {
  waiting: ['M8 4.5V8l2.5 1.5'],
  queued: ['M8 4.5V8l2.5 1.5'],
  starting: [],
  running: [],
  succeeded: ['M5 8.2l2.2 2.2L11 6.2'],
  failed: ['M5.7 5.7l4.6 4.6M10.3 5.7l-4.6 4.6'],
  cancelled: ['M5 8h6'],
  skipped: ['M6 5.5L8.5 8 6 10.5M9.5 5.5v5'],
  cached: ['M5.3 8.8a2.8 2.8 0 0 0 5.2.8M10.7 7.2a2.8 2.8 0 0 0-5.2-.8'],
  lost: ['M6.4 6.4a1.7 1.7 0 1 1 2.3 1.7c-.5.2-.7.5-.7 1M8 11v.2']
};

/** The state of a run or a step as a picture that also says its name, or `label`. */
export function StateIcon(props: {
  state: State;
  label?: string;
  /** Why it is in that state, if that may show. */
  reason?: string | null;
}): JSX.Element {
  const { state, reason } = props;
  const trans = useTrans();
  const label = props.label ?? stateLabel(trans, state);
  return (
    <span
      className="jp-Convect-state"
      data-state={state}
      data-hangs={hangs(state, reason) ? '' : undefined}
      role="img"
      aria-label={label}
      title={label}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <circle cx="8" cy="8" r="6.25" />
        {SHAPES[state].map(path => (
          <path key={path} d={path} />
        ))}
      </svg>
    </span>
  );
}
