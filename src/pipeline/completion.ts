import { parentsOf } from './graph';
import { endOf } from './order';
import type { IDocument } from './schema';
import type { Session } from './session';
import { isObject } from './serialize';

/** Where an expression stands: a rule is decided before the node's own loop begins. */
export type ExpressionPlace = 'when' | 'for_each' | 'outputs';

/** What an expression of a node can refer to: outputs of what runs before it, parameters, items. */
export function referencesFor(
  session: Session,
  node: string | null,
  place: ExpressionPlace
): string[] {
  const { document } = session;
  const later = node === null ? new Set() : session.after(node);
  const before = [...session.views.values()].filter(
    ({ id }) => !later.has(endOf(document, id))
  );
  const outputs = before.flatMap(view =>
    view.outputs
      .filter(port => !port.isPath)
      .map(port => `nodes.${view.id}.outputs.${port.name}`)
  );
  const states = runsAnyway(document, node)
    ? before.map(({ id }) => `nodes.${id}.state`)
    : [];
  return [
    ...outputs,
    ...(place === 'outputs'
      ? []
      : Object.keys(document.parameters ?? {}).map(
          name => `parameters.${name}`
        )),
    ...itemsAround(session, node).map(name => `each.${name}`),
    ...states
  ];
}

/** The names of the items of the loops around a node, with `isOwn` of its own loop too. */
export function itemsAround(
  session: Session,
  node: string | null,
  isOwn = false
): string[] {
  const { document } = session;
  const around = groupsAround(document, node);
  const names: string[] = [];
  for (const id of isOwn && node !== null ? [node, ...around] : around) {
    const loop = document.nodes[id].for_each;
    if (isObject(loop) && typeof loop.name === 'string') {
      names.push(loop.name);
    }
  }
  return names;
}

/** The innermost loop around a node. */
export function loopAround(
  document: IDocument,
  node: string | null
): string | undefined {
  return groupsAround(document, node).find(id =>
    isObject(document.nodes[id].for_each)
  );
}

/** Whether a node, or a group that it is in, runs after a failure. */
export function runsAnyway(document: IDocument, node: string | null): boolean {
  const ids = node === null ? [] : [node, ...groupsAround(document, node)];
  return ids.some(
    id => (document.nodes[id]?.run_if ?? 'succeeded') !== 'succeeded'
  );
}

/** The groups that a node is in, the innermost first. */
function groupsAround(document: IDocument, node: string | null): string[] {
  const parents = parentsOf(document);
  const found: string[] = [];
  let outer = parents.get(node ?? '');
  while (outer !== undefined) {
    found.push(outer);
    outer = parents.get(outer);
  }
  return found;
}

export interface ICompletion {
  /** The part of the text that an option takes the place of. */
  from: number;
  to: number;
  options: string[];
}

const WORD = /[\p{L}\p{N}_.-]*$/u;
const REST = /^[\p{L}\p{N}_.-]*/u;

/** What could stand where the caret is: names that begin like the word there, then others. */
export function completionAt(
  text: string,
  caret: number,
  names: readonly string[]
): ICompletion {
  const before = text.slice(0, caret);
  const [word] = WORD.exec(before)!;
  const [rest] = REST.exec(text.slice(caret))!;
  const range = { from: caret - word.length, to: caret + rest.length };
  const isQuoted =
    (before.match(/"/g)?.length ?? 0) % 2 === 1 ||
    (before.match(/'/g)?.length ?? 0) % 2 === 1;
  if (isQuoted || /^-?\d/.test(word)) {
    return { ...range, options: [] };
  }
  const wish = word.toLowerCase();
  const found = names.filter(
    name => name.toLowerCase().includes(wish) && name !== word + rest
  );
  const rank = (name: string) =>
    name.toLowerCase().startsWith(wish)
      ? 0
      : name.toLowerCase().includes(`.${wish}`)
        ? 1
        : 2;
  return { ...range, options: found.sort((a, b) => rank(a) - rank(b)) };
}
