import type { ReactFlowInstance } from '@xyflow/react';
import { useReactFlow } from '@xyflow/react';
import * as React from 'react';

import type { IBox } from '../graph';
import type { ICanvas, Session } from '../session';
import type { FlowEdge, FlowNode } from './flow';

type Flow = ReactFlowInstance<FlowNode, FlowEdge>;

export const FIT = { maxZoom: 1, padding: 0.08 };

/** Lend the rest of the editor what only the canvas can do. */
export function useHandle(
  session: Session,
  editNote: (id: string | null) => void
): void {
  const flow = useReactFlow<FlowNode, FlowEdge>();
  React.useEffect(() => {
    const handle = handleOf(session, flow, editNote);
    session.canvas = handle;
    return () => {
      if (session.canvas === handle) {
        session.canvas = null;
      }
    };
  }, [session, flow, editNote]);
}

function handleOf(
  session: Session,
  flow: Flow,
  editNote: (id: string | null) => void
): ICanvas {
  const host = () =>
    document.querySelector<HTMLElement>(
      `[data-convect-session="${session.id}"] .react-flow`
    );
  const visible = (): IBox => {
    const box = host()?.getBoundingClientRect() ?? new DOMRect();
    const { x, y } = flow.screenToFlowPosition({ x: box.left, y: box.top });
    const { zoom } = flow.getViewport();
    return { x, y, width: box.width / zoom, height: box.height / zoom };
  };
  const reveal = async (id: string) => {
    const node = flow.getInternalNode(id);
    if (!node) {
      return;
    }
    const { x, y } = node.internals.positionAbsolute;
    const { width = 0, height = 0 } = node.measured;
    if (!isWithin({ x, y, width, height }, visible())) {
      await flow.setCenter(x + width / 2, y + height / 2, {
        zoom: flow.getZoom(),
        duration: 200
      });
    }
  };
  return {
    toDocument: client => flow.screenToFlowPosition(client),
    center: () => {
      const { x, y, width, height } = visible();
      return { x: x + width / 2, y: y + height / 2 };
    },
    fit: ids =>
      void flow.fitView({
        ...FIT,
        duration: 200,
        nodes: ids?.map(id => ({ id }))
      }),
    zoom: step =>
      void (step === 'in'
        ? flow.zoomIn({ duration: 100 })
        : step === 'out'
          ? flow.zoomOut({ duration: 100 })
          : flow.zoomTo(1, { duration: 100 })),
    focusPane: () =>
      host()?.closest<HTMLElement>('.jp-Pipeline-canvas')?.focus(),
    reveal: id => void reveal(id),
    focus: id =>
      void reveal(id).then(() =>
        host()
          ?.querySelector<HTMLElement>(
            `.react-flow__node[data-id="${CSS.escape(id)}"]`
          )
          ?.focus({ preventScroll: true })
      ),
    editNote
  };
}

function isWithin(inner: IBox, outer: IBox): boolean {
  return (
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height
  );
}
