import {
  addIcon,
  expandIcon,
  ToolbarButtonComponent
} from '@jupyterlab/ui-components';
import { Panel, useStore as useFlowStore } from '@xyflow/react';
import * as React from 'react';

import { fitIcon, minimapIcon, snapIcon, zoomOutIcon } from '../icons';
import type { Session } from '../session';
import { useStore } from '../store';
import { TOO_MANY } from './types';

/** Zoom, fit, snap and minimap, in the corner. */
export function Controls({ session }: { session: Session }): JSX.Element {
  const { trans } = session;
  const zoom = useFlowStore(state => Math.round(state.transform[2] * 100));
  const isSnapping = useStore(session.state, state => state.isSnapping);
  const isMinimapOn = useStore(session.state, state => state.isMinimapOn);
  const hasRoom = useFlowStore(state => state.nodes.length <= TOO_MANY);
  return (
    <Panel position="bottom-left" className="jp-Convect-controls">
      <ToolbarButtonComponent
        icon={zoomOutIcon}
        tooltip={trans.__('Zoom out')}
        onClick={() => session.canvas?.zoom('out')}
      />
      <button
        className="jp-Convect-zoom"
        title={trans.__('Zoom to 100%')}
        onClick={() => session.canvas?.zoom('reset')}
      >
        {zoom}%
      </button>
      <ToolbarButtonComponent
        icon={addIcon}
        tooltip={trans.__('Zoom in')}
        onClick={() => session.canvas?.zoom('in')}
      />
      <ToolbarButtonComponent
        icon={fitIcon ?? expandIcon}
        tooltip={trans.__('Fit everything')}
        onClick={() => session.canvas?.fit()}
      />
      <ToolbarButtonComponent
        icon={snapIcon}
        pressed={isSnapping}
        tooltip={trans.__('Snap to the grid')}
        pressedTooltip={trans.__('Snap to the grid')}
        onClick={() => session.state.update({ isSnapping: !isSnapping })}
      />
      <ToolbarButtonComponent
        icon={minimapIcon}
        pressed={isMinimapOn && hasRoom}
        enabled={hasRoom}
        tooltip={
          hasRoom
            ? trans.__('Overview')
            : trans.__('There are too many nodes for an overview')
        }
        pressedTooltip={trans.__('Overview')}
        onClick={() => session.state.update({ isMinimapOn: !isMinimapOn })}
      />
    </Panel>
  );
}
