import type { TranslationBundle } from '@jupyterlab/translation';

import type { IEdge } from './graph';
import { hasRule, isGroup, isInside, nameOf, parentsOf } from './graph';
import type { IDocument } from './schema';

/** Why one node cannot run after another, in words; null when it can. */
export function orderRefusal(
  document: IDocument,
  edges: readonly IEdge[],
  source: string,
  target: string,
  trans: TranslationBundle
): string | null {
  if (!document.nodes[source] || !document.nodes[target]) {
    return trans.__('Only nodes can be connected.');
  }
  if (source === target) {
    return trans.__('A node cannot run after itself.');
  }
  const parents = parentsOf(document);
  if (isInside(parents, source, target) || isInside(parents, target, source)) {
    return trans.__('A group and what is in it have no order.');
  }
  const cycle = cycleOf(document, edges, source, target);
  return cycle
    ? trans.__(
        'This would be a cycle: %1.',
        cycle.map(id => nameOf(document, id)).join(' → ')
      )
    : null;
}

/** The end of a node in `orderOf`; a group has ended when all that is in it has. */
export function endOf(document: IDocument, id: string): string {
  const node = document.nodes[id];
  return node && isGroup(node) ? `${id}/` : id;
}

/**
 * The edges with what groups add to them: a group begins before what is in it and ends
 * after it, and one with a rule begins and ends as a whole.
 */
export function orderOf(document: IDocument, edges: readonly IEdge[]): IEdge[] {
  const parents = parentsOf(document);
  const order: IEdge[] = [];
  const add = (source: string, target: string) =>
    order.push({ id: `${source}>${target}`, kind: 'order', source, target });
  for (const [member, outer] of parents) {
    add(outer, member);
    add(endOf(document, member), endOf(document, outer));
  }
  for (const { source, target } of edges) {
    for (const from of [source, ...scopesAround(document, source, target)]) {
      for (const to of [target, ...scopesAround(document, target, source)]) {
        add(endOf(document, from), to);
      }
    }
  }
  return order;
}

/** The groups with a rule that a node is in and another is not. */
function scopesAround(
  document: IDocument,
  id: string,
  other: string
): string[] {
  const parents = parentsOf(document);
  const scopes: string[] = [];
  let outer: string | undefined = id;
  while ((outer = parents.get(outer)) !== undefined) {
    if (outer === other || isInside(parents, other, outer)) {
      break;
    }
    if (hasRule(document.nodes[outer])) {
      scopes.push(outer);
    }
  }
  return scopes;
}

/** The cycle that there would be if `target` ran after `source`, from `target` to `target`. */
export function cycleOf(
  document: IDocument,
  edges: readonly IEdge[],
  source: string,
  target: string
): string[] | null {
  const id = `${source}>${target}`;
  const order = orderOf(document, [
    ...edges,
    { id, kind: 'order', source, target }
  ]);
  const way = pathBetween(order, target, endOf(document, source));
  if (!way) {
    return null;
  }
  const ids = [...way, target].map(item => item.replace(/\/$/, ''));
  return ids.filter((item, index) => item !== ids[index - 1]);
}

/**
 * The way from `target` to `source`, if there is one: with an edge from
 * `source` to `target` it would be a cycle.
 */
export function pathBetween(
  edges: readonly IEdge[],
  target: string,
  source: string
): string[] | null {
  if (source === target) {
    return [source];
  }
  const next = neighbours(edges).down;
  const cameFrom = new Map<string, string>([[target, '']]);
  const open = [target];
  for (const id of open) {
    for (const after of next.get(id) ?? []) {
      if (cameFrom.has(after)) {
        continue;
      }
      cameFrom.set(after, id);
      if (after === source) {
        const path = [source];
        while (path[0] !== target) {
          path.unshift(cameFrom.get(path[0])!);
        }
        return path;
      }
      open.push(after);
    }
  }
  return null;
}

type Next = ReadonlyMap<string, readonly string[]>;

const nextOf = new WeakMap<readonly IEdge[], { up: Next; down: Next }>();

/** The neighbours of each node in both directions, found once for a list of edges. */
function neighbours(edges: readonly IEdge[]): { up: Next; down: Next } {
  const known = nextOf.get(edges);
  if (known) {
    return known;
  }
  const collect = (from: 'source' | 'target', to: 'source' | 'target') => {
    const next = new Map<string, string[]>();
    for (const edge of edges) {
      const found = next.get(edge[from]);
      if (found) {
        found.push(edge[to]);
      } else {
        next.set(edge[from], [edge[to]]);
      }
    }
    return next;
  };
  const made = {
    up: collect('target', 'source'),
    down: collect('source', 'target')
  };
  nextOf.set(edges, made);
  return made;
}

/** All that runs before (`up`) or after (`down`) these nodes, and they themselves. */
export function reachable(
  edges: readonly IEdge[],
  ids: Iterable<string>,
  direction: 'up' | 'down'
): Set<string> {
  const next = neighbours(edges)[direction];
  const found = new Set(ids);
  for (const id of found) {
    next.get(id)?.forEach(other => found.add(other));
  }
  return found;
}
