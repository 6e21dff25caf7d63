import * as React from 'react';

import { lazy } from '../ui/lazy';
import type { IChartProps } from './chart';

export type { IColours } from './colours';

const LazyChart = lazy(() => import('./chart'));

/** A chart, whose library is loaded when the first one is drawn. */
export function Chart(props: IChartProps): JSX.Element {
  return (
    <React.Suspense fallback={<div style={{ height: props.height }} />}>
      <LazyChart {...props} />
    </React.Suspense>
  );
}
