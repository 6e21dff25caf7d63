import { caretDownIcon } from '@jupyterlab/ui-components';
import type { NodeProps } from '@xyflow/react';
import * as React from 'react';

import { useCanvas } from './context';
import type { GroupFlowNode } from './flow';

/** An open group: a frame around its members, with its name. */
export const GroupBox = React.memo(function GroupBox({
  data
}: NodeProps<GroupFlowNode>): JSX.Element {
  const { trans, toggleFold } = useCanvas();
  const { view } = data;
  return (
    <div className="jp-Pipeline-group">
      <div className="jp-Pipeline-groupHeader">
        <button
          className="jp-Pipeline-fold nodrag"
          title={trans.__('Fold')}
          onClick={() => toggleFold(view.id)}
        >
          <caretDownIcon.react tag="span" />
        </button>
        <span className="jp-Pipeline-groupName" title={view.name}>
          {view.name}
        </span>
      </div>
    </div>
  );
});
