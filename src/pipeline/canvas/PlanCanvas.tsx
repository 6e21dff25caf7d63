import type { TranslationBundle } from '@jupyterlab/translation';
import {
  Background,
  BackgroundVariant,
  ReactFlow,
  ReactFlowProvider
} from '@xyflow/react';
import * as React from 'react';

import { boxesOf } from '../boxes';
import type { IGroup, IStep } from '../../api';
import { stepOf } from '../../api';
import { TranslationProvider } from '../../ui/hooks';
import { edgesOf } from '../graph';
import { layOut } from '../layout';
import type { IDocument } from '../schema';
import type { Store } from '../store';
import { useStore } from '../store';
import { ViewMaker } from '../views';
import type { ICanvasContext } from './context';
import { CanvasContext, useCanvas } from './context';
import type { FlowEdge, FlowNode } from './flow';
import { toFlow } from './flow';
import { ariaLabels } from './labels';
import { EDGE_TYPES, MANY, NODE_TYPES } from './types';
import { useDistance } from './useDistance';
import { useFitWhenSeen } from './useHandle';

export interface IPlanState {
  steps: Readonly<Record<string, IStep>>;
  groups: Readonly<Record<string, IGroup>>;
  selected: string | null;
}

export interface IPlanCanvasProps {
  /** The plan's steps as the nodes of a document. */
  document: IDocument;
  state: Store<IPlanState>;
  trans: TranslationBundle;
  onSelect: (step: string) => void;
}

/** A plan, laid out and read only, with the state of each step. */
export function PlanCanvas(props: IPlanCanvasProps): JSX.Element {
  const { trans, onSelect } = props;
  const outer = useCanvas();
  const context = React.useMemo<ICanvasContext>(
    () => ({ ...outer, trans, openStep: onSelect, isReadOnly: true }),
    [outer, trans, onSelect]
  );
  return (
    <TranslationProvider value={trans}>
      <CanvasContext.Provider value={context}>
        <ReactFlowProvider>
          <Picture {...props} />
        </ReactFlowProvider>
      </CanvasContext.Provider>
    </TranslationProvider>
  );
}

function Picture(props: IPlanCanvasProps): JSX.Element {
  const { document, state, trans, onSelect } = props;
  const { steps, groups, selected } = useStore(state, value => value);
  const id = React.useId();
  const host = React.useRef<HTMLDivElement>(null);
  useFitWhenSeen(host);
  const distance = useDistance();
  const maker = React.useRef(new ViewMaker());
  const edges = React.useMemo(() => edgesOf(document), [document]);
  const views = React.useMemo(
    () =>
      maker.current.make(document, edges, {
        found: NONE,
        problems: [],
        steps,
        groups
      }),
    [document, edges, steps, groups]
  );
  // Where nodes are does not change while the run goes on.
  const placed = React.useMemo(() => {
    const waiting = Object.fromEntries(
      Object.keys(document.nodes).map(id => [id, WAITING])
    );
    const sizes = new ViewMaker().make(document, edges, {
      found: NONE,
      problems: [],
      steps: waiting
    });
    const places = layOut(document, boxesOf(document, sizes), edges);
    const layout = Object.fromEntries(
      [...places].map(([id, { x, y }]) => [id, [x, y]])
    );
    return { ...document, layout };
  }, [document, edges]);
  const flow = React.useMemo(
    () =>
      toFlow({
        document: placed,
        views,
        boxes: boxesOf(placed, views),
        edges,
        selection: new Set(selected === null ? [] : [selected]),
        selectedEdges: new Set(),
        trans
      }),
    [placed, views, edges, selected, trans]
  );
  return (
    <div ref={host} className={`jp-Convect-canvas jp-mod-readOnly ${distance}`}>
      <ReactFlow<FlowNode, FlowEdge>
        id={id}
        nodes={flow.nodes}
        edges={flow.edges}
        nodeTypes={NODE_TYPES}
        edgeTypes={EDGE_TYPES}
        onNodeClick={(_, node) => onSelect(node.id)}
        onKeyDown={event => {
          const id = (event.target as HTMLElement).dataset.id;
          if (event.key === 'Enter' && id) {
            onSelect(id);
          }
        }}
        fitView
        fitViewOptions={{ maxZoom: 1, padding: 0.15 }}
        minZoom={0.05}
        maxZoom={2}
        nodesDraggable={false}
        nodesConnectable={false}
        edgesFocusable={false}
        deleteKeyCode={null}
        preventScrolling={false}
        zoomOnScroll={false}
        panOnScroll={false}
        onlyRenderVisibleElements={flow.nodes.length > MANY}
        ariaLabelConfig={ariaLabels(trans)}
      >
        <Background
          variant={BackgroundVariant.Dots}
          gap={20}
          color="var(--jp-border-color1)"
        />
      </ReactFlow>
    </div>
  );
}

const NONE = new Map();
const WAITING = stepOf({ id: '', state: 'waiting' });
