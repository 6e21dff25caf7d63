import type { EdgeProps } from '@xyflow/react';
import { BaseEdge, getBezierPath } from '@xyflow/react';
import * as React from 'react';

import type { FlowEdge } from './flow';

/** A line from one node to the next. */
export const Wire = React.memo(function Wire(
  props: EdgeProps<FlowEdge>
): JSX.Element {
  const [path] = getBezierPath(props);
  return (
    <BaseEdge
      id={props.id}
      path={path}
      markerEnd={props.markerEnd}
      interactionWidth={16}
    />
  );
});
