import { Graph, layout } from '@dagrejs/dagre';

import { groupTop } from './boxes';
import type { IBox, IEdge, IPoint } from './graph';
import { foldedInto, isFolded, isGroup, isOpenGroup, parentsOf } from './graph';
import { rulesOf } from './rules';
import type { IDocument } from './schema';

/** Among more nodes some lines cross in any case, and looking for fewer takes long. */
const MOST_TRIED = 60;

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
  // Dagre knows nothing of the header of an open group, with its rules.
  const frames = Math.max(
    0,
    ...[...boxes.keys()]
      .filter(id => isOpenGroup(document, id))
      .map(id => groupTop(rulesOf(document.nodes[id]).length))
  );
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
  const lines: [string, string][] = edges.flatMap(edge => {
    const from = hidden.get(edge.source) ?? edge.source;
    const to = hidden.get(edge.target) ?? edge.target;
    // An open group has no place of its own: what is in it comes before or after.
    return boxesIn(from).flatMap(source =>
      boxesIn(to)
        .filter(target => target !== source)
        .map(target => [source, target] as [string, string])
    );
  });
  const attempt = (order: readonly string[]) => {
    const graph = new Graph({ compound: true });
    graph.setGraph({
      rankdir: 'LR',
      nodesep: 40 + frames,
      ranksep: 80,
      // The default takes seconds for a thousand nodes.
      ranker: boxes.size > 300 ? 'longest-path' : 'network-simplex'
    });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const id of order) {
      const { width, height } = boxes.get(id)!;
      graph.setNode(id, isOpen(id) ? {} : { width, height });
    }
    for (const id of order) {
      const parent = parents.get(id);
      if (parent !== undefined && isPart(parent) && isOpen(parent)) {
        graph.setParent(id, parent);
      }
    }
    for (const [source, target] of lines) {
      graph.setEdge(source, target);
    }
    layout(graph);
    return new Map<string, IBox>(
      ids
        .filter(id => !isOpen(id))
        .map(id => {
          const { x, y } = graph.node(id);
          const { width, height } = boxes.get(id)!;
          return [id, { x: x - width / 2, y: y - height / 2, width, height }];
        })
    );
  };
  const places = fewestCrossings(ids, lines, attempt);
  const corner = only ? cornerOf(ids, boxes) : { x: 0, y: 0 };
  const now = cornerOf(ids, places);
  for (const [id, place] of places) {
    places.set(id, {
      x: snap(place.x - now.x + corner.x),
      y: snap(place.y - now.y + corner.y)
    });
  }
  moveFoldedMembers(document, boxes, hidden, places);
  return places;
}

/** Dagre crosses more or fewer lines, depending on the order in which it is told the nodes. */
function fewestCrossings(
  ids: readonly string[],
  lines: readonly [string, string][],
  attempt: (order: readonly string[]) => Map<string, IBox>
): Map<string, IPoint> {
  let best = attempt(ids);
  if (ids.length > MOST_TRIED) {
    return best;
  }
  let fewest = crossings(best, lines);
  for (let turn = 1; turn <= 8 && fewest > 0; turn += 1) {
    const rank = new Map(ids.map((id, at) => [id, ((at + 1) * turn) % 101]));
    const other = attempt(
      [...ids].sort((one, two) => rank.get(two)! - rank.get(one)!)
    );
    const count = crossings(other, lines);
    if (count < fewest) {
      [best, fewest] = [other, count];
    }
  }
  return best;
}

/** How often lines cross, from the right of one box to the left of another. */
export function crossings(
  boxes: ReadonlyMap<string, IBox>,
  lines: readonly [string, string][]
): number {
  const ends = lines.map(([source, target]) => {
    const [one, two] = [boxes.get(source)!, boxes.get(target)!];
    return [
      { x: one.x + one.width, y: one.y + one.height / 2 },
      { x: two.x, y: two.y + two.height / 2 }
    ];
  });
  /** On which side of a line a point is. */
  const side = ([from, to]: IPoint[], { x, y }: IPoint) =>
    Math.sign((to.x - from.x) * (y - from.y) - (to.y - from.y) * (x - from.x));
  const parts = (one: IPoint[], two: IPoint[]) =>
    side(one, two[0]) * side(one, two[1]) < 0;
  return ends
    .map(
      (one, at) =>
        ends.slice(at + 1).filter(two => parts(one, two) && parts(two, one))
          .length
    )
    .reduce((sum, count) => sum + count, 0);
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
