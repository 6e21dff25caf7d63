import type { ReactFlowInstance } from '@xyflow/react';
import { useReactFlow } from '@xyflow/react';
import * as React from 'react';

import type { IBox, IPoint } from '../graph';
import type { ICanvas, Session } from '../session';
import type { FlowEdge, FlowNode } from './flow';
import { FocusKeeper } from './focus';

type Flow = ReactFlowInstance<FlowNode, FlowEdge>;

export const FIT = { maxZoom: 1, padding: 0.08 };

/** Lend the rest of the editor what only the canvas can do. */
export function useHandle(
  session: Session,
  host: React.RefObject<HTMLElement>,
  editNote: (id: string | null) => void
): void {
  const flow = useReactFlow<FlowNode, FlowEdge>();
  React.useEffect(() => {
    const pane = host.current!;
    const keeper = new FocusKeeper(pane, id => session.canvas?.reveal(id));
    const handle = handleOf(pane, flow, keeper, editNote);
    session.canvas = handle;
    return () => {
      keeper.dispose();
      if (session.canvas === handle) {
        session.canvas = null;
      }
    };
  }, [session, host, flow, editNote]);
}

/** Less than that is no place to fit anything into: the tab is hidden, or just being laid out. */
const LEAST_ROOM = 100;

/** What was drawn out of sight, as in a tab behind another one, is fitted when it is first seen. */
export function useFitWhenSeen(
  host: React.RefObject<HTMLElement>,
  isFitted = true
): void {
  const flow = useReactFlow<FlowNode, FlowEdge>();
  React.useEffect(() => {
    const pane = host.current!;
    const hasRoom = () =>
      Math.min(pane.clientWidth, pane.clientHeight) >= LEAST_ROOM;
    if (!isFitted || hasRoom()) {
      return;
    }
    const observer = new ResizeObserver(() => {
      if (hasRoom()) {
        observer.disconnect();
        void flow.fitView(FIT);
      }
    });
    observer.observe(pane);
    return () => observer.disconnect();
  }, [flow, host, isFitted]);
}

function handleOf(
  pane: HTMLElement,
  flow: Flow,
  keeper: FocusKeeper,
  editNote: (id: string | null) => void
): ICanvas {
  const visible = (): IBox => {
    const box = pane.getBoundingClientRect();
    const { x, y } = flow.screenToFlowPosition({ x: box.left, y: box.top });
    const { zoom } = flow.getViewport();
    return { x, y, width: box.width / zoom, height: box.height / zoom };
  };
  const reveal = async (id: string) => {
    const node = flow.getInternalNode(id);
    if (!node) {
      return;
    }
    const { width = 0, height = 0 } = node.measured;
    const by = shiftInto(
      { ...node.internals.positionAbsolute, width, height },
      visible()
    );
    if (by.x || by.y) {
      const { x, y, zoom } = flow.getViewport();
      await flow.setViewport(
        { x: x - by.x * zoom, y: y - by.y * zoom, zoom },
        { duration: pace(200) }
      );
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
        duration: pace(200),
        nodes: ids?.map(id => ({ id }))
      }),
    zoom: step =>
      void (step === 'in'
        ? flow.zoomIn({ duration: pace(100) })
        : step === 'out'
          ? flow.zoomOut({ duration: pace(100) })
          : flow.zoomTo(1, { duration: pace(100) })),
    focusPane: () => pane.focus(),
    reveal: id => void reveal(id),
    focus: id => {
      // First, so that nobody else has it; what is out of sight is drawn only afterwards.
      keeper.focus(id);
      void reveal(id);
    },
    editNote
  };
}

/** How long a movement takes: no time for people who do not want to see it. */
function pace(milliseconds: number): number {
  const { matches } = window.matchMedia('(prefers-reduced-motion: reduce)');
  return matches ? 0 : milliseconds;
}

/** Around what is brought into view. */
const MARGIN = 24;

/** How far to look elsewhere, and no further, so that a box is seen; its beginning, if it is larger. */
export function shiftInto(box: IBox, view: IBox): IPoint {
  const along = (at: number, size: number, from: number, room: number) => {
    const before = at - MARGIN - from;
    const after = at + size + MARGIN - from - room;
    return before < 0 ? before : Math.min(before, Math.max(after, 0));
  };
  return {
    x: along(box.x, box.width, view.x, view.width),
    y: along(box.y, box.height, view.y, view.height)
  };
}
