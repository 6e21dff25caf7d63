import type { IPoint, IEdge } from './graph';
import {
  edgesOf,
  EXPRESSIVE,
  fileValue,
  isGroup,
  isInside,
  isStep,
  moved,
  parentsOf
} from './graph';
import {
  mapNodes,
  mapParameter,
  outputExpression,
  parameterExpression
} from './expressions';
import type { Draft, Path, PipelineDoc } from './model';
import type { IPort } from './ports';
import type { IDocument, Json, Node } from './schema';
import { isObject } from './serialize';

export interface INewNode {
  /** The id it should have; another is made when it is taken. */
  id: string;
  node: Node;
  at: IPoint;
}

/** Where values of this node go when they are wired to a port. */
export function wireProperty(node: Node): 'parameters' | 'inputs' {
  return node.kind === 'component' ? 'inputs' : 'parameters';
}

/** An id like `wish` that is allowed and free. */
export function freeId(taken: (id: string) => boolean, wish: string): string {
  const base =
    wish.replace(/[^\p{L}\p{N}_-]+/gu, '-').replace(/^-+|-+$/g, '') || 'node';
  const stem = base.replace(/-\d+$/, '') || base;
  let id = base;
  for (let count = 2; taken(id); count++) {
    id = `${stem}-${count}`;
  }
  return id;
}

/** Add nodes, and the definitions of components among them. Gives their ids. */
export function addNodes(
  doc: PipelineDoc,
  items: readonly INewNode[],
  components: { [digest: string]: Json } = {}
): string[] {
  const taken = new Set(idsOf(doc.snapshot));
  const ids: string[] = [];
  doc.edit(draft => {
    for (const [digest, definition] of Object.entries(components)) {
      draft.put('components', digest, definition);
    }
    for (const item of items) {
      const id = freeId(wish => taken.has(wish), item.id);
      taken.add(id);
      ids.push(id);
      draft.put('nodes', id, item.node);
      draft.put('layout', id, moved(undefined, item.at));
    }
  });
  return ids;
}

export function addComment(
  doc: PipelineDoc,
  text: string,
  place: number[],
  about: string[] = []
): string {
  const taken = new Set(idsOf(doc.snapshot));
  const id = freeId(wish => taken.has(wish), 'note');
  doc.edit(draft => {
    draft.put('comments', id, about.length ? { text, about } : { text });
    draft.put('layout', id, place.map(Math.round));
  });
  return id;
}

/** Nodes and comments share the layout, so their ids must differ. */
export function idsOf(document: IDocument): string[] {
  return [
    ...Object.keys(document.nodes),
    ...Object.keys(document.comments ?? {}),
    ...Object.keys(document.layout ?? {})
  ];
}

/** `target` runs after `source`. */
export function connect(
  doc: PipelineDoc,
  source: string,
  target: string
): void {
  const node = doc.snapshot.nodes[target];
  if (node && !node.after?.includes(source)) {
    doc.edit(draft =>
      draft.set(['nodes', target, 'after'], [...(node.after ?? []), source])
    );
  }
}

/** The parameter or input `name` of `target` takes an output of `source`. */
export function connectValue(
  doc: PipelineDoc,
  source: string,
  output: string,
  target: string,
  name: string
): void {
  const node = doc.snapshot.nodes[target];
  if (isStep(node)) {
    const path: Path = ['nodes', target, wireProperty(node), name];
    doc.edit(draft => draft.set(path, outputExpression(source, output)));
  }
}

/** The parameter or input `name` of `target` takes a file that `source` declares. */
export function connectFile(
  doc: PipelineDoc,
  source: string,
  output: string,
  target: string,
  name: string
): void {
  const to = doc.snapshot.nodes[target];
  const value = fileValue(doc.snapshot, source, output, target);
  if (isStep(to) && value !== undefined) {
    doc.edit(draft => {
      draft.set(['nodes', target, wireProperty(to), name], value);
      draft.set(
        ['nodes', target, 'after'],
        [...new Set([...(to.after ?? []), source])]
      );
    });
  }
}

/** Make a pipeline parameter like a port of `target`, which takes it from then on. */
export function addParameterFor(
  doc: PipelineDoc,
  target: string,
  port: IPort
): void {
  const node = doc.snapshot.nodes[target];
  doc.edit(draft => {
    draft.set(['meta', 'parameters', port.name], {
      ...(port.type ? { type: port.type } : {}),
      ...(port.default === undefined ? {} : { default: port.default }),
      ...(port.help ? { description: port.help } : {})
    });
    draft.set(
      ['nodes', target, wireProperty(node), port.name],
      parameterExpression(port.name)
    );
  });
}

/** Take nodes, comments and edges away, and every mention of them. */
export function remove(
  doc: PipelineDoc,
  ids: Iterable<string>,
  edges: readonly IEdge[] = []
): void {
  const gone = new Set(ids);
  const removed = new Set(edges.map(edge => edge.id));
  const rest = edgesOf(doc.snapshot).filter(edge => !removed.has(edge.id));
  if (gone.size === 0 && edges.length === 0) {
    return;
  }
  doc.edit(draft => {
    for (const edge of edges) {
      if (!gone.has(edge.target)) {
        removeEdge(draft, edge, rest);
      }
    }
    if (gone.size) {
      removeItems(draft, doc.snapshot, gone);
    }
  });
}

function removeEdge(draft: Draft, edge: IEdge, rest: readonly IEdge[]): void {
  const { source, output, target, path = [] } = edge;
  const place: Path = ['nodes', target, ...path];
  if (edge.kind !== 'value') {
    if (edge.kind === 'file') {
      draft.set(place, undefined);
    }
    // The order stays as long as another file needs it.
    const isNeeded = (other: IEdge) =>
      other.kind === 'file' &&
      other.source === source &&
      other.target === target;
    if (!rest.some(isNeeded)) {
      dropAfter(draft, target, new Set([source]));
    }
    return;
  }
  const value = draft.get(place);
  if (value !== undefined) {
    const rest = mapNodes(value, (node, name) =>
      node === source && name === output ? null : node
    );
    // A loop without a list is none.
    draft.set(
      path[0] === 'for_each' && rest === undefined
        ? (place.slice(0, -1) as Path)
        : place,
      rest
    );
  }
}

function removeItems(
  draft: Draft,
  document: IDocument,
  gone: ReadonlySet<string>
): void {
  for (const [id, node] of Object.entries(document.nodes)) {
    if (gone.has(id)) {
      draft.put('nodes', id, undefined);
    } else {
      if (isGroup(node)) {
        const members = node.members.filter(member => !gone.has(member));
        draft.set(['nodes', id, 'members'], members);
      }
      dropAfter(draft, id, gone);
      rewire(draft, id, source => (gone.has(source) ? null : source));
    }
  }
  for (const [id, comment] of Object.entries(document.comments ?? {})) {
    if (gone.has(id)) {
      draft.put('comments', id, undefined);
    } else if (comment.about?.some(node => gone.has(node))) {
      const about = comment.about.filter(node => !gone.has(node));
      draft.set(['comments', id, 'about'], about.length ? about : undefined);
    }
  }
  for (const id of gone) {
    draft.put('layout', id, undefined);
  }
  dropUnusedComponents(draft, document, gone);
}

function dropAfter(
  draft: Draft,
  target: string,
  sources: ReadonlySet<string>
): void {
  const path: Path = ['nodes', target, 'after'];
  const before = draft.get(path);
  if (Array.isArray(before)) {
    const after = before.filter(source => !sources.has(String(source)));
    if (after.length < before.length) {
      draft.set(path, after.length ? after : undefined);
    }
  }
}

function rewire(
  draft: Draft,
  id: string,
  change: (node: string) => string | null
): void {
  for (const property of EXPRESSIVE) {
    const path: Path = ['nodes', id, property];
    const value = draft.get(path);
    if (value !== undefined && JSON.stringify(value).includes('${{')) {
      const isRule = property === 'when' || property === 'for_each';
      // What is decided by a node that is gone would else run always, or once.
      const mapped = mapNodes(
        value,
        isRule ? node => change(node) ?? node : change
      );
      const isEmpty = isObject(mapped) && Object.keys(mapped).length === 0;
      draft.set(path, isEmpty ? undefined : mapped);
    }
  }
}

function dropUnusedComponents(
  draft: Draft,
  document: IDocument,
  gone: ReadonlySet<string>
): void {
  const used = new Set<string>();
  const lost = new Set<string>();
  for (const [id, node] of Object.entries(document.nodes)) {
    if (node.kind === 'component') {
      (gone.has(id) ? lost : used).add(node.component);
    }
  }
  for (const digest of lost) {
    if (!used.has(digest)) {
      draft.put('components', digest, undefined);
    }
  }
}

/** Give a node another id, everywhere. Gives the id that it got. */
export function renameNode(
  doc: PipelineDoc,
  old: string,
  wish: string
): string {
  const document = doc.snapshot;
  const node = document.nodes[old];
  const taken = new Set(idsOf(document).filter(id => id !== old));
  const id = freeId(item => taken.has(item), wish);
  if (!node || id === old) {
    return old;
  }
  const change = (item: string) => (item === old ? id : item);
  doc.edit(draft => {
    draft.put('nodes', old, undefined);
    draft.put('nodes', id, node);
    const place = document.layout?.[old];
    if (place) {
      draft.put('layout', old, undefined);
      draft.put('layout', id, place);
    }
    for (const [other, item] of Object.entries(document.nodes)) {
      const target = change(other);
      if (isGroup(item) && item.members.includes(old)) {
        draft.set(['nodes', target, 'members'], item.members.map(change));
      }
      if (item.after?.includes(old)) {
        draft.set(['nodes', target, 'after'], item.after.map(change));
      }
      if (other !== old) {
        rewire(draft, other, change);
      }
    }
    if (document.outputs) {
      const outputs = mapNodes(document.outputs, change);
      draft.set(['meta', 'outputs'], outputs);
    }
    for (const [comment, item] of Object.entries(document.comments ?? {})) {
      if (item.about?.includes(old)) {
        draft.set(['comments', comment, 'about'], item.about.map(change));
      }
    }
  });
  return id;
}

/** Call a parameter of the pipeline otherwise, wherever it is used; whether the name was free. */
export function renameParameter(
  doc: PipelineDoc,
  old: string,
  name: string
): boolean {
  const { parameters = {}, outputs, nodes } = doc.snapshot;
  if (!(old in parameters) || name in parameters) {
    return false;
  }
  doc.edit(draft => {
    draft.set(['meta', 'parameters', old], undefined);
    draft.set(['meta', 'parameters', name], { ...parameters[old] });
    for (const id of Object.keys(nodes)) {
      for (const property of EXPRESSIVE) {
        const path: Path = ['nodes', id, property];
        const value = draft.get(path);
        if (value !== undefined) {
          draft.set(path, mapParameter(value, old, name));
        }
      }
    }
    if (outputs) {
      draft.set(['meta', 'outputs'], mapParameter(outputs, old, name));
    }
  });
  return true;
}

/** Put these nodes into a new group. Gives its id. */
export function group(
  doc: PipelineDoc,
  ids: readonly string[],
  name: string,
  at: IPoint
): string {
  const document = doc.snapshot;
  const parents = parentsOf(document);
  const taken = new Set(idsOf(document));
  const id = freeId(wish => taken.has(wish), 'group');
  // Only the outermost of what was chosen; their members come with them.
  const members = ids.filter(
    item => item in document.nodes && !ids.includes(parents.get(item) ?? '')
  );
  doc.edit(draft => {
    const outer = parents.get(members[0]);
    leaveGroups(draft, document, members);
    draft.put('nodes', id, { kind: 'group', name, members });
    draft.put('layout', id, moved(undefined, at));
    if (outer && members.every(item => parents.get(item) === outer)) {
      const rest = (document.nodes[outer] as { members: string[] }).members;
      draft.set(
        ['nodes', outer, 'members'],
        [...rest.filter(item => !members.includes(item)), id]
      );
    }
  });
  return id;
}

export function ungroup(doc: PipelineDoc, ids: readonly string[]): void {
  const document = doc.snapshot;
  const parents = parentsOf(document);
  doc.edit(draft => {
    for (const id of ids) {
      const node = document.nodes[id];
      if (!node || !isGroup(node)) {
        continue;
      }
      draft.put('nodes', id, undefined);
      draft.put('layout', id, undefined);
      const outer = document.nodes[parents.get(id) ?? ''];
      if (outer && isGroup(outer)) {
        const members = outer.members.filter(member => member !== id);
        draft.set(
          ['nodes', parents.get(id)!, 'members'],
          [...members, ...node.members]
        );
      }
    }
  });
}

/** Leave nodes out of runs or, when all of them are, put them back. */
export function toggleDisabled(
  doc: PipelineDoc,
  ids: readonly string[]
): boolean {
  const { nodes } = doc.snapshot;
  const isOn = !ids.every(id => nodes[id]?.disabled);
  doc.edit(draft => {
    for (const id of ids) {
      draft.set(['nodes', id, 'disabled'], isOn || undefined);
    }
  });
  return isOn;
}

/** Put nodes into a group (or, with null, out of the one they are in). */
export function setGroup(
  doc: PipelineDoc,
  ids: readonly string[],
  target: string | null,
  gesture?: string
): void {
  const document = doc.snapshot;
  // Only the outermost of what was chosen; their members stay with them.
  const parents = parentsOf(document);
  const nodes = ids.filter(
    id =>
      id in document.nodes && !ids.some(outer => isInside(parents, id, outer))
  );
  doc.edit(draft => {
    leaveGroups(draft, document, nodes);
    const node = target === null ? undefined : document.nodes[target];
    if (node && isGroup(node)) {
      const members = node.members.filter(member => !nodes.includes(member));
      draft.set(['nodes', target!, 'members'], [...members, ...nodes]);
    }
  }, gesture);
}

function leaveGroups(
  draft: Draft,
  document: IDocument,
  ids: readonly string[]
): void {
  for (const [id, node] of Object.entries(document.nodes)) {
    if (isGroup(node) && node.members.some(member => ids.includes(member))) {
      const members = node.members.filter(member => !ids.includes(member));
      draft.set(['nodes', id, 'members'], members);
    }
  }
}
