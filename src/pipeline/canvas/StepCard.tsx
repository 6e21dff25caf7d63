import { PathExt } from '@jupyterlab/coreutils';
import {
  caretDownIcon,
  caretRightIcon,
  errorIcon
} from '@jupyterlab/ui-components';
import type { NodeProps } from '@xyflow/react';
import { Handle, Position } from '@xyflow/react';
import * as React from 'react';

import {
  badgeRows,
  farFontSize,
  innerCorner,
  ORDER_OFFSET,
  portOffset,
  viewSize
} from '../boxes';
import { iconOf } from '../nodeicon';
import { translated } from '../../ui/sentences';
import type { IPort } from '../ports';
import type { Rule } from '../rules';
import { itemsSentence, ruleBadge, ruleSentence } from '../rules';
import type { IBadge, INodeView } from '../views';
import { useCanvas } from './context';
import type { StepFlowNode } from './flow';
import { IN, inPort, OUT, outHandle, withinPort } from './flow';
import { StepStatus } from './StepStatus';

/** A node, or a folded group, as a box with its ends. */
export const StepCard = React.memo(function StepCard({
  data,
  isConnectable
}: NodeProps<StepFlowNode>): JSX.Element {
  const { view } = data;
  const { openStep } = useCanvas();
  const classes = ['jp-Convect-card', `jp-mod-${view.kind}`];
  if (view.isMissing) {
    classes.push('jp-mod-missing');
  }
  if (view.isDisabled) {
    classes.push('jp-mod-disabled');
  }
  if (view.inner) {
    classes.push('jp-mod-unfolded');
  }
  if (view.step) {
    classes.push(`jp-mod-${view.step.state}`);
  }
  return (
    <div className={classes.join(' ')} data-state={view.step?.state}>
      <OrderEnds isConnectable={isConnectable} />
      <div
        className="jp-Convect-farName"
        title={view.name}
        style={{ fontSize: farFontSize(view.name, viewSize(view)) }}
        aria-hidden
      >
        {view.name}
      </div>
      <Header view={view} />
      <Rules view={view} />
      {badgeRows(view).map(row => (
        <div key={row[0].kind} className="jp-Convect-badges">
          {row.map(badge => (
            <Badge key={badge.kind} badge={badge} />
          ))}
        </div>
      ))}
      <Ports view={view} isConnectable={isConnectable} />
      {view.step && (
        <StepStatus step={view.step} onClick={() => openStep(view.id)} />
      )}
    </div>
  );
});

/** The ends of the order: what runs before, and what runs after. */
export function OrderEnds(props: { isConnectable: boolean }): JSX.Element {
  const { trans } = useCanvas();
  return (
    <>
      <Handle
        type="target"
        id={IN}
        position={Position.Left}
        className="jp-Convect-end jp-Convect-in"
        style={{ top: ORDER_OFFSET }}
        isConnectable={props.isConnectable}
        title={trans.__('Runs after')}
      />
      <Handle
        type="source"
        id={OUT}
        position={Position.Right}
        className="jp-Convect-end"
        style={{ top: ORDER_OFFSET }}
        isConnectable={props.isConnectable}
        title={trans.__('Runs before')}
      />
    </>
  );
}

function Header({ view }: { view: INodeView }): JSX.Element {
  const { showProblems, toggleFold, trans } = useCanvas();
  const icon = iconOf(view);
  const hasParts = view.isFolded || view.inner !== undefined;
  const count =
    view.kind === 'group'
      ? trans._n('%1 node', '%1 nodes', view.count)
      : hasParts
        ? trans._n('%1 task', '%1 tasks', view.count)
        : view.subtitle;
  return (
    <div className="jp-Convect-cardHeader">
      <icon.react tag="span" className="jp-Convect-cardIcon" />
      <div className="jp-Convect-cardTitle">
        <div className="jp-Convect-cardName" title={view.name}>
          {view.name}
        </div>
        <div className="jp-Convect-cardPath" title={view.subtitle}>
          {view.isMissing && view.kind === 'component'
            ? trans.__('Definition is missing')
            : count}
        </div>
      </div>
      {view.problems.length > 0 && (
        <ProblemBadge view={view} onClick={() => showProblems(view.id)} />
      )}
      {hasParts && (
        <button
          className="jp-Convect-fold nodrag"
          title={view.isFolded ? trans.__('Unfold') : trans.__('Fold')}
          aria-expanded={!view.isFolded}
          onClick={() => toggleFold(view.id)}
        >
          {view.isFolded ? (
            <caretRightIcon.react tag="span" />
          ) : (
            <caretDownIcon.react tag="span" />
          )}
        </button>
      )}
    </div>
  );
}

export function ProblemBadge(props: {
  view: INodeView;
  onClick: () => void;
}): JSX.Element {
  const { problems } = props.view;
  const worst = problems.some(problem => problem.severity === 'error')
    ? 'error'
    : problems.some(problem => problem.severity === 'warning')
      ? 'warning'
      : 'info';
  const { trans } = useCanvas();
  const text = problems
    .map(problem => translated(problem.message, trans))
    .join('\n');
  return (
    <button
      className={`jp-Convect-problemBadge jp-mod-${worst} nodrag`}
      title={text}
      aria-label={text}
      onClick={props.onClick}
    >
      <errorIcon.react tag="span" />
      {problems.length > 1 && problems.length}
    </button>
  );
}

/** What decides if, or how often, it runs: one row each. */
export function Rules({ view }: { view: INodeView }): JSX.Element {
  const { trans } = useCanvas();
  return (
    <>
      {view.rules.map(rule => {
        const items = rule.kind === 'for_each' ? view.items : undefined;
        const sentence = ruleSentence(rule, trans);
        return (
          <div key={rule.kind} className="jp-Convect-badges">
            <span
              className="jp-Convect-badge jp-Convect-rule"
              data-rule={rule.kind}
              title={
                items ? `${sentence}\n${itemsSentence(items, trans)}` : sentence
              }
            >
              <RuleIcon kind={rule.kind} />
              <span className="jp-Convect-ruleText">
                {ruleBadge(rule, trans)}
              </span>
              {items && (
                <b className="jp-Convect-ruleCount">
                  {trans.__('%1 of %2', items.done, items.total)}
                </b>
              )}
            </span>
          </div>
        );
      })}
    </>
  );
}

/** Paths in a box of 16 by 16, drawn as strokes. */
const RULE_SHAPES: Record<Rule['kind'], string> = {
  when: 'M8 1.5L14.5 8 8 14.5 1.5 8zM6.3 6.2a1.8 1.8 0 1 1 2.4 1.9c-.5.2-.7.5-.7 1.1M8 11.4v.1',
  for_each:
    'M3 8a5 5 0 0 1 8.8-3.2L13 6M13 2.5V6H9.5M13 8a5 5 0 0 1-8.8 3.2L3 10M3 13.5V10h3.5',
  run_if: 'M3.5 14.5V2M3.5 2.5h8.5l-2.2 3 2.2 3H3.5',
  disabled: 'M8 2a6 6 0 1 0 0 12A6 6 0 1 0 8 2M3.8 3.8l8.4 8.4'
};

function RuleIcon({ kind }: { kind: Rule['kind'] }): JSX.Element {
  return (
    <svg viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
      <path d={RULE_SHAPES[kind]} />
    </svg>
  );
}

function Badge({ badge }: { badge: IBadge }): JSX.Element {
  const { trans } = useCanvas();
  const labels: Record<IBadge['kind'], string> = {
    image: trans.__('Image'),
    cpu: trans.__('CPU'),
    memory: trans.__('Memory'),
    gpu: trans.__('GPU')
  };
  const label = labels[badge.kind];
  const title = badge.isDefault
    ? trans.__('%1: %2 (from the defaults of the pipeline)', label, badge.text)
    : `${label}: ${badge.text}`;
  return (
    <span
      className={`jp-Convect-badge jp-mod-${badge.kind}${badge.isDefault ? ' jp-mod-default' : ''}`}
      title={title}
    >
      {(badge.kind === 'gpu' || badge.kind === 'cpu') && <b>{label}</b>}
      {badge.kind === 'gpu' ? withoutVendor(badge.text) : badge.text}
    </span>
  );
}

/** A card is narrow, and who made a GPU says the least. */
function withoutVendor(text: string): string {
  return text.replace(/\b(nvidia|amd|intel)[- ]/i, '');
}

function Ports(props: {
  view: INodeView;
  isConnectable: boolean;
}): JSX.Element | null {
  const { view, isConnectable } = props;
  const count = Math.max(view.inputs.length, view.outputs.length);
  if (count === 0) {
    return null;
  }
  return (
    <>
      {view.inputs.map((port, index) => (
        <Handle
          key={inPort(port.name)}
          type="target"
          id={inPort(port.name)}
          position={Position.Left}
          className={`jp-Convect-port${port.isWired ? ' jp-mod-wired' : ''}`}
          style={{ top: portOffset(view, index) }}
          isConnectable={isConnectable}
        />
      ))}
      {view.outputs.map((port, index) => (
        <Handle
          key={outHandle(port)}
          type="source"
          id={outHandle(port)}
          position={Position.Right}
          className={`jp-Convect-port${port.isWired ? ' jp-mod-wired' : ''}${port.isPath ? ' jp-mod-file' : ''}`}
          style={{ top: portOffset(view, index) }}
          isConnectable={isConnectable}
        />
      ))}
      {view.inner && <WithinPorts view={view} />}
      <div className="jp-Convect-ports">
        {Array.from({ length: count }, (_, index) => (
          <div key={index} className="jp-Convect-portRow">
            <PortName port={view.inputs[index]} />
            <PortName
              port={view.outputs[index]}
              isOutput
              value={view.step?.outputs[view.outputs[index]?.name]}
            />
          </div>
        ))}
      </div>
    </>
  );
}

/** The ends of a graph component for the wires in it; they are not seen. */
function WithinPorts({ view }: { view: INodeView }): JSX.Element {
  const { x } = innerCorner(view);
  return (
    <>
      {view.inputs.map((port, index) => (
        <Handle
          key={port.name}
          type="source"
          id={withinPort(port.name, 'out')}
          position={Position.Right}
          className="jp-Convect-within"
          style={{ top: portOffset(view, index), left: x, right: 'auto' }}
          isConnectable={false}
        />
      ))}
      {view.outputs.map((port, index) => (
        <Handle
          key={port.name}
          type="target"
          id={withinPort(port.name, 'in')}
          position={Position.Left}
          className="jp-Convect-within"
          style={{ top: portOffset(view, index), right: x, left: 'auto' }}
          isConnectable={false}
        />
      ))}
    </>
  );
}

function PortName(props: {
  port: IPort | undefined;
  isOutput?: boolean;
  /** What the shown run gave there. */
  value?: unknown;
}): JSX.Element {
  const { trans } = useCanvas();
  const { port } = props;
  if (!port) {
    return <span />;
  }
  const classes = ['jp-Convect-portName'];
  if (props.isOutput) {
    classes.push('jp-mod-output');
  }
  if (port.isSet) {
    classes.push('jp-mod-set');
  }
  if (port.isUnknown) {
    classes.push('jp-mod-unknown');
  }
  const needs = port.isRequired && !port.isSet && !port.isWired;
  const lines = [
    port.type ? `${port.name}: ${port.type}` : port.name,
    port.isPath ? trans.__('A file that it makes') : '',
    props.value === undefined ? '' : `= ${JSON.stringify(props.value)}`,
    port.help ?? '',
    port.isUnknown ? trans.__('The file does not know it.') : '',
    needs ? trans.__('It needs a value.') : ''
  ];
  return (
    <span
      className={classes.join(' ')}
      title={lines.filter(Boolean).join('\n')}
    >
      {port.isPath ? PathExt.basename(port.name) : port.name}
      {needs && <span className="jp-Convect-portRequired">*</span>}
    </span>
  );
}
