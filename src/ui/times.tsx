import * as React from 'react';

import { elapsed, formatAgo, formatDuration, formatExact } from './format';
import { useClock, useNow } from './hooks';

/** `5 minutes ago`, with the exact time on hover. */
export function Ago({ time }: { time: number }): JSX.Element {
  useClock();
  return (
    <time
      dateTime={new Date(time * 1000).toISOString()}
      title={formatExact(time)}
    >
      {formatAgo(time)}
    </time>
  );
}

/** How long something took, or has been taking so far. */
export function Duration(props: {
  started?: number | null;
  ended?: number | null;
  live: boolean;
}): JSX.Element | null {
  const { started, ended, live } = props;
  const now = useNow(live && !!started && !ended);
  const seconds = elapsed(started, ended, now);
  if (seconds === null || !started) {
    return null;
  }
  return (
    <span className="jp-Convect-duration" title={formatExact(started)}>
      {formatDuration(seconds)}
    </span>
  );
}
