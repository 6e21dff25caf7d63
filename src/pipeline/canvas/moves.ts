import type { NodeChange } from '@xyflow/react';
import { applyNodeChanges } from '@xyflow/react';

import type { IBox, IPoint } from '../graph';
import {
  isFolded,
  isGroup,
  isInside,
  membersOf,
  parentsOf,
  pointOf
} from '../graph';
import type { IDocument } from '../schema';
import { groupBox } from '../views';
import type { FlowNode } from './flow';

/** The new nodes in place of the present ones, keeping what only the canvas knows. */
export function reconcile(
  current: readonly FlowNode[],
  next: readonly FlowNode[]
): FlowNode[] {
  const known = new Map(current.map(node => [node.id, node]));
  return next.map(node => {
    const old = known.get(node.id);
    if (!old || old.type !== node.type) {
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

/**
 * The nodes after some were moved: the members of an open group come with it,
 * and the frame of a group follows its members.
 */
export function applyMoves(
  nodes: FlowNode[],
  changes: NodeChange<FlowNode>[],
  document: IDocument
): FlowNode[] {
  const before = new Map(nodes.map(node => [node.id, node.position]));
  const after = applyNodeChanges(changes, nodes);
  const moved = movedIds(changes);
  if (moved.size === 0) {
    return after;
  }
  const parents = parentsOf(document);
  const shifts = new Map<string, IPoint>();
  for (const node of after) {
    if (node.type === 'frame' && moved.has(node.id)) {
      const old = before.get(node.id)!;
      const shift = { x: node.position.x - old.x, y: node.position.y - old.y };
      for (const other of after) {
        if (!moved.has(other.id) && isInside(parents, other.id, node.id)) {
          shifts.set(other.id, shift);
        }
      }
    }
  }
  const shifted = after.map(node => {
    const shift = shifts.get(node.id);
    return shift
      ? ({
          ...node,
          position: {
            x: node.position.x + shift.x,
            y: node.position.y + shift.y
          }
        } as FlowNode)
      : node;
  });
  return reframe(
    shifted,
    new Set([...moved, ...shifts.keys()]),
    parents,
    moved
  );
}

/** Frames of open groups, the innermost first, around where their members are. */
function reframe(
  nodes: FlowNode[],
  touched: ReadonlySet<string>,
  parents: ReadonlyMap<string, string>,
  held: ReadonlySet<string>
): FlowNode[] {
  const groups = nodes
    .filter(node => node.type === 'frame' && !held.has(node.id))
    .filter(group => [...touched].some(id => isInside(parents, id, group.id)));
  if (groups.length === 0) {
    return nodes;
  }
  const boxes = new Map<string, IBox>(
    nodes.map(node => [
      node.id,
      { ...node.position, width: node.width ?? 0, height: node.height ?? 0 }
    ])
  );
  const frames = new Map<string, IBox>();
  for (const group of groups.sort(
    (a, b) => (b.zIndex ?? 0) - (a.zIndex ?? 0)
  )) {
    const members = nodes
      .filter(node => isInside(parents, node.id, group.id))
      .map(node => boxes.get(node.id)!);
    const frame = groupBox(members, group.position);
    frames.set(group.id, frame);
    boxes.set(group.id, frame);
  }
  return nodes.map(node => {
    const frame = frames.get(node.id);
    return frame
      ? ({
          ...node,
          position: { x: frame.x, y: frame.y },
          width: frame.width,
          height: frame.height,
          measured: { width: frame.width, height: frame.height }
        } as FlowNode)
      : node;
  });
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

/** What to write when nodes have come to rest. */
export function placesOf(
  document: IDocument,
  nodes: readonly FlowNode[],
  moved: ReadonlySet<string>
): Map<string, IPoint> {
  const parents = parentsOf(document);
  const places = new Map<string, IPoint>();
  for (const node of nodes) {
    const isMoved =
      moved.has(node.id) ||
      [...moved].some(id => isInside(parents, node.id, id));
    if (!isMoved || node.type === 'frame') {
      continue;
    }
    places.set(node.id, node.position);
    const item = document.nodes[node.id];
    if (item && isGroup(item) && isFolded(document, node.id)) {
      const from = pointOf(document.layout?.[node.id]) ?? node.position;
      for (const member of membersOf(document, node.id)) {
        const at = pointOf(document.layout?.[member]);
        if (at) {
          places.set(member, {
            x: at.x + node.position.x - from.x,
            y: at.y + node.position.y - from.y
          });
        }
      }
    }
  }
  return places;
}

/** The open group on which nodes were dropped, if they are not in it yet. */
export function groupUnder(
  document: IDocument,
  nodes: readonly FlowNode[],
  dropped: readonly string[]
): string | null {
  const parents = parentsOf(document);
  const centers = nodes
    .filter(node => dropped.includes(node.id) && node.id in document.nodes)
    .map(node => ({
      x: node.position.x + (node.width ?? 0) / 2,
      y: node.position.y + (node.height ?? 0) / 2
    }));
  if (centers.length === 0) {
    return null;
  }
  const found = nodes
    .filter(
      node =>
        node.type === 'frame' &&
        !dropped.includes(node.id) &&
        !dropped.some(id => isInside(parents, node.id, id)) &&
        !dropped.some(id => isInside(parents, id, node.id)) &&
        centers.every(
          center =>
            center.x >= node.position.x &&
            center.x <= node.position.x + (node.width ?? 0) &&
            center.y >= node.position.y &&
            center.y <= node.position.y + (node.height ?? 0)
        )
    )
    .sort((a, b) => (b.zIndex ?? 0) - (a.zIndex ?? 0));
  return found[0]?.id ?? null;
}
