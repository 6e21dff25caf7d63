import type { OnEdgesChange, OnNodesChange } from '@xyflow/react';
import { applyNodeChanges } from '@xyflow/react';
import * as React from 'react';

import { move } from '../positions';
import { putInto } from '../arranging';
import type { Session } from '../session';
import { useSignal, useStore } from '../store';
import type { FlowEdge, FlowNode } from './flow';
import { toFlow } from './flow';
import { groupAfterDrop, movedIds, placesOf, reconcile } from './moves';

export interface IFlowState {
  nodes: FlowNode[];
  edges: FlowEdge[];
  onNodesChange: OnNodesChange<FlowNode>;
  onEdgesChange: OnEdgesChange<FlowEdge>;
  onDragStart: () => void;
  onDragStop: (event: unknown, node: FlowNode, nodes: FlowNode[]) => void;
}

/** The document as the canvas draws it, and what the canvas does to it. */
export function useFlow(session: Session): IFlowState {
  const document = useSignal(session.doc.changed, () => session.document);
  const found = useStore(session.files.store, state => state.found);
  const problems = useStore(session.checker.store, state => state.problems);
  const steps = useStore(session.runs.store, state => state.steps);
  const unfolded = useStore(session.state, state => state.unfolded);
  const selection = useStore(session.state, state => state.selection);
  const selectedEdges = useStore(session.state, state => state.selectedEdges);

  const flow = React.useMemo(
    () =>
      toFlow({
        document,
        views: session.views,
        boxes: session.boxes,
        edges: session.edges,
        selection,
        selectedEdges,
        trans: session.trans,
        describedBy: `${session.id}-keys`
      }),
    // The session's views follow from these.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [
      session,
      document,
      found,
      problems,
      steps,
      unfolded,
      selection,
      selectedEdges
    ]
  );

  const [nodes, setNodes] = React.useState(flow.nodes);
  const latest = React.useRef(nodes);
  latest.current = nodes;
  React.useLayoutEffect(
    () => setNodes(current => reconcile(current, flow.nodes)),
    [flow.nodes]
  );

  const gesture = React.useRef<string | null>(null);
  const onNodesChange = React.useCallback<OnNodesChange<FlowNode>>(
    changes => {
      select(session, 'selection', changes);
      const rest = changes.filter(
        change => change.type === 'position' || change.type === 'dimensions'
      );
      if (rest.length === 0) {
        return;
      }
      const next = applyNodeChanges(rest, latest.current);
      latest.current = next;
      setNodes(next);
      const isAtRest = rest.some(
        change => change.type === 'position' && change.dragging === false
      );
      if (isAtRest && !session.isReadOnly) {
        const places = placesOf(session.document, next, movedIds(rest));
        move(session.doc, places, gesture.current ?? undefined);
      }
    },
    [session]
  );

  const onEdgesChange = React.useCallback<OnEdgesChange<FlowEdge>>(
    changes => select(session, 'selectedEdges', changes),
    [session]
  );

  const onDragStart = React.useCallback(() => {
    gesture.current = `drag:${Date.now()}`;
  }, []);

  const onDragStop = React.useCallback(
    (_: unknown, __: FlowNode, dragged: FlowNode[]) => {
      const ids = dragged.map(item => item.id);
      const target = groupAfterDrop(session.document, latest.current, ids);
      if (target !== undefined && gesture.current && !session.isReadOnly) {
        putInto(session, ids, target, gesture.current);
      }
      gesture.current = null;
    },
    [session]
  );

  return {
    nodes,
    edges: flow.edges,
    onNodesChange,
    onEdgesChange,
    onDragStart,
    onDragStop
  };
}

function select(
  session: Session,
  key: 'selection' | 'selectedEdges',
  changes: readonly { type: string; id?: string; selected?: boolean }[]
): void {
  const chosen = changes.filter(change => change.type === 'select');
  if (chosen.length) {
    const ids = new Set(session.state.value[key]);
    for (const { id, selected } of chosen) {
      if (selected) {
        ids.add(id!);
      } else {
        ids.delete(id!);
      }
    }
    session.state.update({ [key]: ids });
  }
}
