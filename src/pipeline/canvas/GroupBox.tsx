import { caretDownIcon } from '@jupyterlab/ui-components';
import type { NodeProps } from '@xyflow/react';
import * as React from 'react';

import { StateIcon } from '../../ui/stateicon';
import { useCanvas } from './context';
import type { GroupFlowNode } from './flow';
import { OrderEnds, ProblemBadge, Rules } from './StepCard';

/** An open group: a frame around its members, with its name and its ends. */
export const GroupBox = React.memo(function GroupBox({
  data,
  isConnectable
}: NodeProps<GroupFlowNode>): JSX.Element {
  const { trans, openStep, showProblems, toggleFold } = useCanvas();
  const { view } = data;
  return (
    <div className="jp-Convect-frame" data-state={view.step?.state}>
      <OrderEnds isConnectable={isConnectable} />
      <div className="jp-Convect-groupHeader">
        <button
          className="jp-Convect-fold nodrag"
          title={trans.__('Fold')}
          onClick={() => toggleFold(view.id)}
        >
          <caretDownIcon.react tag="span" />
        </button>
        <span className="jp-Convect-groupName" title={view.name}>
          {view.name}
        </span>
        {view.step && (
          <button
            className="jp-Convect-fold nodrag"
            onClick={() => openStep(view.id)}
          >
            <StateIcon state={view.step.state} />
          </button>
        )}
        {view.problems.length > 0 && (
          <ProblemBadge view={view} onClick={() => showProblems(view.id)} />
        )}
      </div>
      <Rules view={view} />
    </div>
  );
});
