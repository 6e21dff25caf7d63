import * as React from 'react';

import { elapsed, formatAgo, formatDuration, formatExact } from './format';
import { useClock } from './hooks';

/** `5 minutes ago`, with the exact time on hover. */
export function Ago({ time }: { time: number }): JSX.Element {
  const text = useClock(() => formatAgo(time));
  return (
    <time
      dateTime={new Date(time * 1000).toISOString()}
      title={formatExact(time)}
    >
      {text}
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
  const text = useClock(now => {
    const seconds = ended || live ? elapsed(started, ended, now) : null;
    return seconds === null ? '' : formatDuration(seconds);
  });
  if (!text || !started) {
    return null;
  }
  return (
    <span className="jp-Convect-duration" title={formatExact(started)}>
      {text}
    </span>
  );
}
