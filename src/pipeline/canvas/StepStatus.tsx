import * as React from 'react';

import type { IStep } from '../../api';
import { Duration } from '../../ui/times';
import { formatValue } from '../../ui/format';
import { translated } from '../../ui/sentences';
import { StateIcon } from '../../ui/stateicon';
import { isLive, stateLabel } from '../../ui/states';
import { useCanvas } from './context';

/** What a step is doing, in one line, with its progress behind it. */
export function StepStatus(props: {
  step: IStep;
  onClick: () => void;
}): JSX.Element {
  const { step } = props;
  const { trans } = useCanvas();
  const progress = step.state === 'running' ? step.progress : null;
  const share =
    progress && progress.cells > 0 ? progress.cell / progress.cells : 0;
  const label = stateLabel(trans, step.state);
  const reason = step.reason ? translated(step.reason, trans) : '';
  // A colour and a picture say that it is done; what it found is worth the words.
  const metrics = Object.entries(step.metrics)
    .map(([name, value]) => `${name} ${formatValue(value)}`)
    .join(' · ');
  const text =
    progress && progress.cells > 0
      ? trans.__('%1 of %2', progress.cell, progress.cells)
      : reason || metrics || label;
  return (
    <button
      className={`jp-Convect-status nodrag jp-mod-${step.state}`}
      title={[reason ? `${label}: ${reason}` : label, metrics]
        .filter(Boolean)
        .join('\n')}
      onClick={props.onClick}
    >
      <span
        className="jp-Convect-statusBar"
        style={{ transform: `scaleX(${share})` }}
      />
      <StateIcon state={step.state} reason={step.reason} />
      <span className="jp-Convect-statusText">{text}</span>
      <Duration
        started={step.started}
        ended={step.ended}
        live={isLive(step.state)}
      />
    </button>
  );
}
