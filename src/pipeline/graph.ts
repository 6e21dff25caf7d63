import { PathExt } from '@jupyterlab/coreutils';

import type {
  ICommandNode,
  IComponentNode,
  IDocument,
  IGroupNode,
  INotebookNode,
  IPipelineNode,
  IScriptNode,
  Json,
  Node,
  Place
} from './schema';
import { referencesIn } from './expressions';
import { isObject } from './serialize';

/** A node that runs: everything but a group. */
export type StepNode =
  INotebookNode | IScriptNode | ICommandNode | IComponentNode | IPipelineNode;

/** One node depends on another: in order only, or because it takes a value or a file. */
export interface IEdge {
  id: string;
  kind: 'order' | 'value' | 'file';
  source: string;
  target: string;
  /** The output, or the file among the declared ones, that is taken. */
  output?: string;
  /** The property that takes it: `['parameters', 'rows']`, `['when']`, `['for_each', 'in']`, … */
  path?: string[];
}

export interface IPoint {
  x: number;
  y: number;
}

export interface IBox extends IPoint {
  width: number;
  height: number;
}

/** The properties whose values may hold expressions. */
export const EXPRESSIVE = [
  'parameters',
  'inputs',
  'env',
  'command',
  'when',
  'for_each'
] as const;

/** Those of them whose parts are ends of their own. */
const PARTED = new Set(['parameters', 'inputs', 'env', 'for_each']);

const edgesOfNode = new WeakMap<object, Map<string, IEdge[]>>();

/** Every dependency in the document, once each. */
export function edgesOf(document: IDocument): IEdge[] {
  const edges: IEdge[] = [];
  for (const [id, node] of Object.entries(document.nodes)) {
    const into = edgesInto(id, node).filter(
      edge => edge.source in document.nodes
    );
    const files = into.flatMap(edge =>
      edge.kind === 'order' ? fileEdges(document, edge) : []
    );
    // A file that is taken says more than the order, which it needs.
    edges.push(
      ...into.filter(
        edge =>
          edge.kind !== 'order' ||
          !files.some(file => file.source === edge.source)
      ),
      ...files
    );
  }
  return edges;
}

/** What a node takes of the files that the node right before it declares. */
function fileEdges(document: IDocument, { source, target }: IEdge): IEdge[] {
  const to = document.nodes[target];
  if (!isStep(to)) {
    return [];
  }
  const property = to.kind === 'component' ? 'inputs' : 'parameters';
  const values = Object.entries(
    (to.kind === 'component' ? to.inputs : to.parameters) ?? {}
  );
  return declaredFiles(document.nodes[source]).flatMap(output => {
    const taken = JSON.stringify(fileValue(document, source, output, target));
    return values
      .filter(([, value]) => JSON.stringify(value) === taken)
      .map(([name]) => ({
        id: `${source}:${output}>${target}.${property}.${name}`,
        kind: 'file' as const,
        source,
        target,
        output,
        path: [property, name]
      }));
  });
}

/** The files that a node says it makes, as it says it: paths and patterns. */
export function declaredFiles(node: Node): string[] {
  const outputs = 'outputs' in node ? node.outputs : undefined;
  return Array.isArray(outputs)
    ? [...new Set(outputs.filter(item => typeof item === 'string' && item))]
    : [];
}

/** Whether a declared output may stand for several files. */
export function isPattern(output: string): boolean {
  return /[*?[\]{}]/.test(output);
}

/**
 * How `target` is given a file that `source` declares: a component as a file,
 * others as its path from where they work. A pattern is nothing to be given.
 */
export function fileValue(
  document: IDocument,
  source: string,
  output: string,
  target: string
): Json | undefined {
  if (isPattern(output)) {
    return undefined;
  }
  const to = document.nodes[target];
  const path = PathExt.normalize(
    PathExt.join(workingFolder(document, document.nodes[source]) ?? '', output)
  );
  if (to.kind === 'component') {
    return { file: path };
  }
  // What is handed to an isolated node lies there as it was declared.
  const home = workingFolder(document, to);
  return home === null ? output : PathExt.relative(home, path);
}

/** The folder in which a node runs, from the pipeline's; null for one of its own. */
function workingFolder(document: IDocument, node: Node): string | null {
  const own = 'working_folder' in node ? node.working_folder : undefined;
  const folder = own ?? document.defaults?.working_folder ?? 'source';
  if (folder === 'isolated') {
    return null;
  }
  return folder === 'source' || folder === 'shared'
    ? 'path' in node
      ? PathExt.dirname(node.path)
      : ''
    : folder;
}

function edgesInto(target: string, node: Node): IEdge[] {
  const known = edgesOfNode.get(node)?.get(target);
  if (known) {
    return known;
  }
  const edges = [...valueEdges(target, node), ...orderEdges(target, node)];
  edgesOfNode.set(node, new Map([[target, edges]]));
  return edges;
}

function orderEdges(target: string, node: Node): IEdge[] {
  const after = 'after' in node && Array.isArray(node.after) ? node.after : [];
  return [...new Set(after)].map(source => ({
    id: `${source}>${target}`,
    kind: 'order',
    source,
    target
  }));
}

function valueEdges(target: string, node: Node): IEdge[] {
  const edges = new Map<string, IEdge>();
  for (const property of EXPRESSIVE) {
    const value = (node as unknown as { [key: string]: unknown })[property];
    const items: [string[], unknown][] =
      PARTED.has(property) && isObject(value)
        ? Object.entries(value).map(([key, item]) => [[property, key], item])
        : [[[property], value]];
    for (const [path, item] of items) {
      for (const reference of referencesIn(item)) {
        if (reference.kind === 'output') {
          const { node: source, output } = reference;
          const id = `${source}.${output}>${target}.${path.join('.')}`;
          edges.set(id, { id, kind: 'value', source, target, output, path });
        } else if (reference.kind === 'state') {
          const { node: source } = reference;
          const id = `${source}>${target}.${path.join('.')}`;
          edges.set(id, { id, kind: 'value', source, target, path });
        }
      }
    }
  }
  return [...edges.values()];
}

export function isGroup(node: Node): node is IGroupNode {
  return node.kind === 'group';
}

export function isStep(node: Node | undefined): node is StepNode {
  return node !== undefined && node.kind !== 'group';
}

/** Whether it is decided while a run goes on if, or how often, it runs. */
export function hasRule(node: Node): boolean {
  const { run_if = 'succeeded', disabled } = node;
  const isAsked = 'when' in node || 'for_each' in node;
  return isAsked || run_if !== 'succeeded' || disabled === true;
}

/** Whether it, or a group around it, is left out of runs. */
export function isDisabled(document: IDocument, id: string): boolean {
  const outer = parentsOf(document).get(id);
  return (
    document.nodes[id]?.disabled === true ||
    (outer !== undefined && isDisabled(document, outer))
  );
}

/** The node whose properties and commands a node on the canvas stands for. */
export function ownerOf(id: string): string {
  // Ids of nodes have no dots; those of tasks in a graph component have.
  return id.split('.', 1)[0];
}

/** What people call a node. */
export function nameOf(document: IDocument, id: string): string {
  const node = document.nodes[id];
  return (typeof node?.name === 'string' && node.name) || id;
}

const parentsIn = new WeakMap<object, ReadonlyMap<string, string>>();

/** The group that each node is in. A node can be in only one group. */
export function parentsOf(document: IDocument): ReadonlyMap<string, string> {
  const known = parentsIn.get(document.nodes);
  if (known) {
    return known;
  }
  const parents = new Map<string, string>();
  for (const [id, node] of Object.entries(document.nodes)) {
    if (isGroup(node)) {
      for (const member of node.members ?? []) {
        if (
          member !== id &&
          !parents.has(member) &&
          !isInside(parents, id, member)
        ) {
          parents.set(member, id);
        }
      }
    }
  }
  parentsIn.set(document.nodes, parents);
  return parents;
}

/** Whether `inner` is in `outer`, at any depth. */
export function isInside(
  parents: ReadonlyMap<string, string>,
  inner: string,
  outer: string
): boolean {
  let id: string | undefined = inner;
  while ((id = parents.get(id)) !== undefined) {
    if (id === outer) {
      return true;
    }
  }
  return false;
}

/** The nodes and groups in a group, at any depth. */
export function membersOf(document: IDocument, group: string): string[] {
  const parents = parentsOf(document);
  return Object.keys(document.nodes).filter(id => isInside(parents, id, group));
}

export function isFolded(document: IDocument, group: string): boolean {
  const place = document.layout?.[group];
  return !!place && !Array.isArray(place) && place.folded === true;
}

export function isOpenGroup(document: IDocument, id: string): boolean {
  const node = document.nodes[id];
  return node !== undefined && isGroup(node) && !isFolded(document, id);
}

/** For each node in a folded group, the outermost folded group that shows it. */
export function foldedInto(document: IDocument): Map<string, string> {
  const parents = parentsOf(document);
  const shown = new Map<string, string>();
  for (const id of Object.keys(document.nodes)) {
    let outer: string | undefined = id;
    while ((outer = parents.get(outer)) !== undefined) {
      if (isFolded(document, outer)) {
        shown.set(id, outer);
      }
    }
  }
  return shown;
}

/** The line that stands for an edge on the canvas, between what is seen of its ends. */
interface ILine {
  id: string;
  source: string;
  target: string;
}

/** The line of an edge; a folded group (`foldedInto`) shows one for all that cross its border. */
export function lineOf(
  edge: IEdge,
  hidden: ReadonlyMap<string, string>
): ILine {
  const source = hidden.get(edge.source) ?? edge.source;
  const target = hidden.get(edge.target) ?? edge.target;
  const isWhole = source === edge.source && target === edge.target;
  return { id: isWhole ? edge.id : `${source}>>${target}`, source, target };
}

export function pointOf(place: Place | undefined): IPoint | null {
  const at = Array.isArray(place) ? place : place?.at;
  return Array.isArray(at) && Number.isFinite(at[0]) && Number.isFinite(at[1])
    ? { x: at[0], y: at[1] }
    : null;
}

/** The size that a place states, for notes. */
export function sizeOf(
  place: Place | undefined
): { width: number; height: number } | null {
  const at = Array.isArray(place) ? place : place?.at;
  return at && at.length === 4 ? { width: at[2], height: at[3] } : null;
}

/** The place moved, with everything else it says kept. */
export function moved(place: Place | undefined, to: IPoint): Place {
  const x = Math.round(to.x);
  const y = Math.round(to.y);
  if (place && !Array.isArray(place)) {
    return { ...place, at: [x, y, ...place.at.slice(2)] };
  }
  return [x, y, ...(place ?? []).slice(2)];
}
