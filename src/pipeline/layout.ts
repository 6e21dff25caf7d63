import { Graph, layout } from '@dagrejs/dagre';

import { groupTop } from './boxes';
import type { IBox, IEdge, IPoint } from './graph';
import { foldedInto, isFolded, isGroup, isOpenGroup, parentsOf } from './graph';
import { rulesOf } from './rules';
import type { IDocument } from './schema';

/**
 * Places from left to right, in the order in which nodes run.
 *
 * With `only`, nothing else moves, and the corner of what moves stays. Open
 * groups are kept together; notes stay where they are.
 */
export function layOut(
  document: IDocument,
  boxes: ReadonlyMap<string, IBox>,
  edges: readonly IEdge[],
  only: ReadonlySet<string> | null = null
): Map<string, IPoint> {
  const hidden = foldedInto(document);
  const parents = parentsOf(document);
  const graph = new Graph({ compound: true });
  // Dagre knows nothing of the header of an open group, with its rules.
  const frames = Math.max(
    0,
    ...[...boxes.keys()]
      .filter(id => isOpenGroup(document, id))
      .map(id => groupTop(rulesOf(document.nodes[id]).length))
  );
  graph.setGraph({
    rankdir: 'LR',
    nodesep: 40 + frames,
    ranksep: 80,
    // The default takes seconds for a thousand nodes.
    ranker: boxes.size > 300 ? 'longest-path' : 'network-simplex'
  });
  graph.setDefaultEdgeLabel(() => ({}));
  const isPart = (id: string) =>
    id in document.nodes &&
    boxes.has(id) &&
    !hidden.has(id) &&
    (only === null || only.has(id));
  const isOpen = (id: string) => {
    const node = document.nodes[id];
    return isGroup(node) && !isFolded(document, id);
  };
  const boxesIn = (id: string): string[] => {
    const node = document.nodes[id];
    if (!isPart(id)) {
      return [];
    }
    return isGroup(node) && isOpen(id)
      ? node.members
          .filter(member => parents.get(member) === id)
          .flatMap(boxesIn)
      : [id];
  };
  const ids = [...boxes.keys()].filter(isPart);
  for (const id of ids) {
    const { width, height } = boxes.get(id)!;
    graph.setNode(id, isOpen(id) ? {} : { width, height });
  }
  for (const id of ids) {
    const parent = parents.get(id);
    if (parent !== undefined && isPart(parent) && isOpen(parent)) {
      graph.setParent(id, parent);
    }
  }
  for (const edge of edges) {
    const from = hidden.get(edge.source) ?? edge.source;
    const to = hidden.get(edge.target) ?? edge.target;
    // An open group has no place of its own: what is in it comes before or after.
    for (const source of boxesIn(from)) {
      for (const target of boxesIn(to)) {
        if (source !== target) {
          graph.setEdge(source, target);
        }
      }
    }
  }
  layout(graph);

  const places = new Map<string, IPoint>();
  for (const id of ids.filter(item => !isOpen(item))) {
    const { x, y } = graph.node(id);
    const { width, height } = boxes.get(id)!;
    places.set(id, { x: x - width / 2, y: y - height / 2 });
  }
  const corner = only ? cornerOf(ids, boxes) : { x: 0, y: 0 };
  const now = cornerOf(ids, new Map([...places]));
  for (const [id, place] of places) {
    places.set(id, {
      x: snap(place.x - now.x + corner.x),
      y: snap(place.y - now.y + corner.y)
    });
  }
  moveFoldedMembers(document, boxes, hidden, places);
  return places;
}

/** A folded group takes its hidden members along. */
function moveFoldedMembers(
  document: IDocument,
  boxes: ReadonlyMap<string, IBox>,
  hidden: ReadonlyMap<string, string>,
  places: Map<string, IPoint>
): void {
  for (const [id, group] of hidden) {
    const [to, from, box] = [
      places.get(group),
      boxes.get(group),
      boxes.get(id)
    ];
    if (to && from && box && document.nodes[id].kind !== 'group') {
      places.set(id, { x: box.x + to.x - from.x, y: box.y + to.y - from.y });
    }
  }
}

function cornerOf(
  ids: readonly string[],
  boxes: ReadonlyMap<string, IPoint>
): IPoint {
  const points = ids.map(id => boxes.get(id)).filter(box => box !== undefined);
  return points.length
    ? {
        x: Math.min(...points.map(point => point.x)),
        y: Math.min(...points.map(point => point.y))
      }
    : { x: 0, y: 0 };
}

function snap(value: number): number {
  return Math.round(value / 10) * 10;
}
