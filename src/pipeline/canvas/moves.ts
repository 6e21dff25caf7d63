import type { NodeChange } from '@xyflow/react';

import type { IBox, IPoint } from '../graph';
import {
  isFolded,
  isInside,
  isOpenGroup,
  membersOf,
  parentsOf,
  pointOf
} from '../graph';
import type { IDocument } from '../schema';
import type { FlowNode } from './flow';

/** The new nodes in place of the present ones, keeping what only the canvas knows. */
export function reconcile(
  current: readonly FlowNode[],
  next: readonly FlowNode[]
): FlowNode[] {
  const known = new Map(current.map(node => [node.id, node]));
  return next.map(node => {
    const old = known.get(node.id);
    if (!old || old.type !== node.type || old.parentId !== node.parentId) {
      return node;
    }
    const position = old.dragging ? old.position : node.position;
    const isSame =
      sameData(old, node) &&
      old.selected === node.selected &&
      old.width === node.width &&
      old.height === node.height &&
      old.zIndex === node.zIndex &&
      old.ariaLabel === node.ariaLabel &&
      old.position.x === position.x &&
      old.position.y === position.y;
    return isSame
      ? old
      : ({
          ...node,
          position,
          dragging: old.dragging,
          measured: { width: node.width, height: node.height }
        } as FlowNode);
  });
}

function sameData(one: FlowNode, two: FlowNode): boolean {
  return one.type === 'note' || two.type === 'note'
    ? 'text' in one.data &&
        'text' in two.data &&
        one.data.text === two.data.text
    : 'view' in one.data &&
        'view' in two.data &&
        one.data.view === two.data.view;
}

/** Where everything is on the canvas: members are placed from the corner of their group. */
function boxesOn(nodes: readonly FlowNode[]): Map<string, IBox> {
  const boxes = new Map<string, IBox>();
  for (const node of nodes) {
    // Groups come before what is in them.
    const corner = boxes.get(node.parentId ?? '') ?? { x: 0, y: 0 };
    boxes.set(node.id, {
      x: corner.x + node.position.x,
      y: corner.y + node.position.y,
      width: node.width ?? 0,
      height: node.height ?? 0
    });
  }
  return boxes;
}

export function movedIds(
  changes: readonly NodeChange<FlowNode>[]
): Set<string> {
  return new Set(
    changes
      .filter(change => change.type === 'position' && change.position)
      .map(change => ('id' in change ? change.id : ''))
  );
}

/** What to write when nodes have come to rest. Open groups have no place of their own. */
export function placesOf(
  document: IDocument,
  nodes: readonly FlowNode[],
  moved: ReadonlySet<string>
): Map<string, IPoint> {
  const parents = parentsOf(document);
  const places = new Map<string, IPoint>();
  for (const [id, { x, y }] of boxesOn(nodes)) {
    const isMoved =
      moved.has(id) || [...moved].some(outer => isInside(parents, id, outer));
    if (!isMoved || isOpenGroup(document, id)) {
      continue;
    }
    const from = pointOf(document.layout?.[id]) ?? { x, y };
    places.set(id, { x, y });
    // What a folded group hides moves with it.
    for (const member of isFolded(document, id)
      ? membersOf(document, id)
      : []) {
      const at = pointOf(document.layout?.[member]);
      if (at) {
        places.set(member, { x: at.x + x - from.x, y: at.y + y - from.y });
      }
    }
  }
  return places;
}

/**
 * The group that nodes are in after they were dropped, null for none; `undefined` when
 * that is where they were. Onto the frame of another group they go into it; out of the
 * frame of their own, with no part of them left on it, they leave it.
 */
export function groupAfterDrop(
  document: IDocument,
  nodes: readonly FlowNode[],
  dropped: readonly string[]
): string | null | undefined {
  const parents = parentsOf(document);
  const boxes = boxesOn(nodes);
  const frames = nodes.filter(({ type }) => type === 'frame');
  const items = dropped.filter(
    id =>
      id in document.nodes && boxes.has(id) && !hasOuter(parents, id, dropped)
  );
  const home = parents.get(items[0]) ?? null;
  if (
    items.length === 0 ||
    items.some(id => (parents.get(id) ?? null) !== home)
  ) {
    return undefined;
  }
  const isFree = (id: string) =>
    !items.some(item => item === id || isInside(parents, id, item));
  // Groups come before those in them.
  const under = frames
    .filter(
      ({ id }) =>
        isFree(id) &&
        items.every(item => holds(boxes.get(id)!, boxes.get(item)!))
    )
    .pop()?.id;
  if (under !== undefined) {
    return under === home ||
      (home !== null &&
        isInside(parents, home, under) &&
        touches(boxes, home, items))
      ? undefined
      : under;
  }
  return home === null || touches(boxes, home, items)
    ? undefined
    : outerOn(parents, boxes, home, items);
}

function hasOuter(
  parents: ReadonlyMap<string, string>,
  id: string,
  ids: readonly string[]
): boolean {
  return ids.some(outer => isInside(parents, id, outer));
}

/** The innermost group around one that was left on whose frame they still are. */
function outerOn(
  parents: ReadonlyMap<string, string>,
  boxes: ReadonlyMap<string, IBox>,
  left: string,
  items: readonly string[]
): string | null {
  let outer = parents.get(left);
  while (outer !== undefined && !touches(boxes, outer, items)) {
    outer = parents.get(outer);
  }
  return outer ?? null;
}

function touches(
  boxes: ReadonlyMap<string, IBox>,
  frame: string,
  items: readonly string[]
): boolean {
  const one = boxes.get(frame)!;
  return items.some(item => {
    const two = boxes.get(item)!;
    return (
      one.x < two.x + two.width &&
      two.x < one.x + one.width &&
      one.y < two.y + two.height &&
      two.y < one.y + one.height
    );
  });
}

/** Whether the middle of a box is on a frame. */
function holds(frame: IBox, { x, y, width, height }: IBox): boolean {
  return (
    x + width / 2 >= frame.x &&
    x + width / 2 <= frame.x + frame.width &&
    y + height / 2 >= frame.y &&
    y + height / 2 <= frame.y + frame.height
  );
}
