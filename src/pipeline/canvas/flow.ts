import type { TranslationBundle } from '@jupyterlab/translation';
import type { Edge, Node, NodeHandle } from '@xyflow/react';
import { MarkerType, Position } from '@xyflow/react';

import { innerCorner, ORDER_OFFSET, portOffset } from '../boxes';
import { stateLabel } from '../../ui/states';
import type { IBox, IEdge } from '../graph';
import { foldedInto, isInside, lineOf, nameOf, parentsOf } from '../graph';
import type { IDocument } from '../schema';
import type { INodeView } from '../views';
import { itemsSentence, ruleSentence } from '../rules';

export type StepFlowNode = Node<{ view: INodeView }, 'step'>;
export type GroupFlowNode = Node<{ view: INodeView }, 'frame'>;
export type NoteFlowNode = Node<{ text: string }, 'note'>;
export type FlowNode = StepFlowNode | GroupFlowNode | NoteFlowNode;

/** One line on the canvas: several edges when a folded group hides their ends. */
export type FlowEdge = Edge<{ edges: IEdge[] }, 'wire'>;

export interface IFlow {
  nodes: FlowNode[];
  edges: FlowEdge[];
}

/** All that the flow is made of. */
export interface IFlowSource {
  document: IDocument;
  views: ReadonlyMap<string, INodeView>;
  boxes: ReadonlyMap<string, IBox>;
  edges: readonly IEdge[];
  selection: ReadonlySet<string>;
  selectedEdges: ReadonlySet<string>;
  trans: TranslationBundle;
  /** The id of the element that explains the keys. */
  describedBy?: string;
}

export const IN = 'in';
export const OUT = 'out';

export function inPort(name: string): string {
  return `in:${name}`;
}

export function outPort(name: string): string {
  return `out:${name}`;
}

/** The handle of something that a node gives: a value, or a file that it declares. */
export function outHandle(port: { name: string; isPath?: boolean }): string {
  return port.isPath ? `file:${port.name}` : outPort(port.name);
}

/** The file that a handle stands for, if it stands for one. */
export function fileOf(handle: string | null | undefined): string | null {
  return handle?.startsWith('file:') ? portName(handle) : null;
}

/** An end of a graph component as the tasks in it see it: its inputs give. */
export function withinPort(name: string, end: 'in' | 'out'): string {
  return `within-${end}:${name}`;
}

/** The name of the port that a handle stands for; null for the ends of order. */
export function portName(handle: string | null | undefined): string | null {
  return handle && handle.includes(':')
    ? handle.slice(handle.indexOf(':') + 1)
    : null;
}

/** What the canvas library draws. Nodes come in reading order, for the keyboard. */
export function toFlow(source: IFlowSource): IFlow {
  const hidden = foldedInto(source.document);
  const nodes = flowNodes(source, hidden);
  const inner = nodes.map(node =>
    node.type === 'step'
      ? innerFlow(node as StepFlowNode, source.trans)
      : NOTHING
  );
  return {
    nodes: nodes.flatMap((node, index) => [node, ...inner[index].nodes]),
    edges: [
      ...flowEdges(source, hidden),
      ...inner.flatMap(({ edges }) => edges)
    ]
  };
}

const NOTHING: IFlow = { nodes: [], edges: [] };

/** What is in an unfolded graph component. It can be looked at, not changed. */
function innerFlow(outer: StepFlowNode, trans: TranslationBundle): IFlow {
  const { view } = outer.data;
  if (!view.inner) {
    return NOTHING;
  }
  const { views, boxes, edges } = view.inner;
  const corner = innerCorner(view);
  const tasks = [...boxes].map(([id, box]): StepFlowNode => ({
    id,
    type: 'step',
    data: { view: views.get(id)! },
    parentId: outer.id,
    position: { x: corner.x + box.x, y: corner.y + box.y },
    width: box.width,
    height: box.height,
    measured: { width: box.width, height: box.height },
    handles: handlesOf(views.get(id)!, box),
    className: 'jp-Convect-task',
    draggable: false,
    selectable: false,
    connectable: false,
    zIndex: INNER,
    ariaLabel: labelOf(views.get(id)!, undefined, trans)
  }));
  const wires = edges.map((edge): FlowEdge => ({
    id: edge.id,
    type: 'wire',
    source: edge.source,
    target: edge.target,
    sourceHandle: innerEnd(outer.id, edge.source, edge.output, 'out'),
    targetHandle: innerEnd(outer.id, edge.target, edge.input, 'in'),
    className: `jp-Convect-wire jp-mod-${edge.kind} ${stateClass(views.get(edge.target))}`,
    selectable: false,
    focusable: false,
    zIndex: INNER,
    markerEnd: edge.kind === 'order' ? ARROW : undefined,
    data: { edges: [] }
  }));
  const deeper = tasks.map(task => innerFlow(task, trans));
  return {
    nodes: tasks.flatMap((task, index) => [task, ...deeper[index].nodes]),
    edges: [...wires, ...deeper.flatMap(flow => flow.edges)]
  };
}

const OUTER = 3;
const INNER = 4;

/** The handle of one end of a wire: at a task, or at the graph, from within. */
function innerEnd(
  outer: string,
  node: string,
  name: string | undefined,
  end: 'in' | 'out'
): string {
  if (node === outer) {
    return withinPort(name ?? '', end);
  }
  const [port, order] = end === 'in' ? [inPort, IN] : [outPort, OUT];
  return name === undefined ? order : port(name);
}

/**
 * Nodes, the members of an open group after it and placed from its corner: the
 * canvas library moves them together. Among siblings they are in reading order.
 */
function flowNodes(
  source: IFlowSource,
  hidden: ReadonlyMap<string, string>
): FlowNode[] {
  const { boxes } = source;
  const parents = parentsOf(source.document);
  const before = predecessors(source);
  const siblings = new Map<string, string[]>();
  for (const id of boxes.keys()) {
    const parent = parents.get(id) ?? '';
    siblings.set(parent, [...(siblings.get(parent) ?? []), id]);
  }
  const nodesIn = (parent: string, depth: number): FlowNode[] =>
    (siblings.get(parent) ?? [])
      .filter(id => !hidden.has(id))
      .sort((a, b) => {
        const [one, two] = [boxes.get(a)!, boxes.get(b)!];
        return one.x - two.x || one.y - two.y;
      })
      .flatMap(id => [
        flowNode(source, id, parent, depth, before.get(id)),
        ...nodesIn(id, depth + 1)
      ]);
  return nodesIn('', 0);
}

function flowNode(
  source: IFlowSource,
  id: string,
  parent: string,
  depth: number,
  before: ReadonlySet<string> | undefined
): FlowNode {
  const { document, trans } = source;
  const box = source.boxes.get(id)!;
  const corner = source.boxes.get(parent) ?? { x: 0, y: 0 };
  const common = {
    id,
    parentId: parent || undefined,
    position: { x: box.x - corner.x, y: box.y - corner.y },
    width: box.width,
    height: box.height,
    measured: { width: box.width, height: box.height },
    selected: source.selection.has(id),
    domAttributes: { 'aria-describedby': source.describedBy }
  };
  const view = source.views.get(id);
  if (!view) {
    const text = document.comments?.[id]?.text ?? '';
    return {
      ...common,
      type: 'note',
      data: { text },
      zIndex: 1,
      connectable: false,
      ariaLabel: trans.__('Note: %1', text)
    };
  }
  const isFrame = view.kind === 'group' && !view.isFolded;
  return {
    ...common,
    type: isFrame ? 'frame' : 'step',
    data: { view },
    zIndex: isFrame ? depth - 100 : view.inner ? OUTER : 2,
    handles: handlesOf(view, box),
    ariaLabel: labelOf(view, before, trans)
  };
}

/** How large ends of the order and of values are; the style sheet has the same numbers. */
const END = 11;
const PORT = 9;

/**
 * Told beforehand, so that lines are right before a node was ever on the screen,
 * and as it will be measured there: lines end at the rim, where an arrow is seen.
 */
function handlesOf(view: INodeView, box: IBox): NodeHandle[] {
  const handle = (
    type: 'source' | 'target',
    id: string,
    y: number,
    size: number
  ): NodeHandle => ({
    id,
    type,
    position: type === 'target' ? Position.Left : Position.Right,
    x: (type === 'target' ? 0 : box.width) - size / 2,
    y: y - size / 2,
    width: size,
    height: size
  });
  return [
    handle('target', IN, ORDER_OFFSET, END),
    handle('source', OUT, ORDER_OFFSET, END),
    ...view.inputs.map((port, index) =>
      handle('target', inPort(port.name), portOffset(view, index), PORT)
    ),
    ...view.outputs.map((port, index) =>
      handle('source', outHandle(port), portOffset(view, index), PORT)
    ),
    ...(view.inner ? withinHandles(view, box) : [])
  ];
}

/** Where the wires in a graph component begin and end. */
function withinHandles(view: INodeView, box: IBox): NodeHandle[] {
  const { x } = innerCorner(view);
  const size = { width: 1, height: 1 };
  return [
    ...view.inputs.map((port, index): NodeHandle => ({
      ...size,
      id: withinPort(port.name, 'out'),
      type: 'source',
      position: Position.Right,
      x,
      y: portOffset(view, index)
    })),
    ...view.outputs.map((port, index): NodeHandle => ({
      ...size,
      id: withinPort(port.name, 'in'),
      type: 'target',
      position: Position.Left,
      x: box.width - x,
      y: portOffset(view, index)
    }))
  ];
}

function flowEdges(
  source: IFlowSource,
  hidden: ReadonlyMap<string, string>
): FlowEdge[] {
  const { document, views, edges, selectedEdges, trans } = source;
  const parents = parentsOf(document);
  const lines = new Map<string, FlowEdge>();
  for (const edge of edges) {
    const { id, source: from, target: to } = lineOf(edge, hidden);
    if (
      from === to ||
      isInside(parents, from, to) ||
      isInside(parents, to, from)
    ) {
      continue;
    }
    const known = lines.get(id);
    if (known) {
      known.data!.edges.push(edge);
      continue;
    }
    const hasPort =
      edge.path?.length === 2 &&
      (edge.path[0] === 'parameters' || edge.path[0] === 'inputs');
    lines.set(id, {
      id,
      type: 'wire',
      source: from,
      target: to,
      sourceHandle:
        edge.output !== undefined && from === edge.source
          ? outHandle({ name: edge.output, isPath: edge.kind === 'file' })
          : OUT,
      targetHandle: hasPort && to === edge.target ? inPort(edge.path![1]) : IN,
      selected: selectedEdges.has(id),
      className: `jp-Convect-wire jp-mod-${edge.kind} ${stateClass(views.get(to))}`,
      markerEnd: edge.kind === 'order' || isRule(edge) ? ARROW : undefined,
      ariaLabel: edgeLabel(document, edge, trans),
      data: { edges: [edge] }
    });
  }
  return [...lines.values()];
}

/** Whether it decides if, or how often, its target runs. */
function isRule({ path }: IEdge): boolean {
  return path?.[0] === 'when' || path?.[0] === 'for_each';
}

const ARROW = {
  type: MarkerType.ArrowClosed,
  // In widths of the line, which is thicker when it is far away.
  width: 11,
  height: 11,
  color: 'var(--jp-inverse-layout-color4)'
};

function stateClass(view: INodeView | undefined): string {
  return view?.step ? `jp-mod-${view.step.state}` : '';
}

function edgeLabel(
  document: IDocument,
  edge: IEdge,
  trans: TranslationBundle
): string {
  const from = nameOf(document, edge.source);
  const to = nameOf(document, edge.target);
  if (edge.kind === 'order') {
    return trans.__('“%1” runs after “%2”', to, from);
  }
  const [property, name = property] = edge.path!;
  const { output = trans.__('the state') } = edge;
  if (property === 'when') {
    return trans.__('“%1” is decided by %2 of “%3”', to, output, from);
  }
  if (property === 'for_each') {
    return trans.__('“%1” loops over %2 of “%3”', to, output, from);
  }
  return edge.kind === 'file'
    ? trans.__('“%1” takes the file %2 from “%3” as %4', to, output, from, name)
    : trans.__('“%1” takes %2 from “%3” as %4', to, output, from, name);
}

/** The names of the nodes right before each node. */
function predecessors({ document, edges }: IFlowSource) {
  const before = new Map<string, Set<string>>();
  for (const edge of edges) {
    const names = before.get(edge.target) ?? new Set();
    before.set(edge.target, names.add(nameOf(document, edge.source)));
  }
  return before;
}

/** What a screen reader says of a node. */
function labelOf(
  view: INodeView,
  before: ReadonlySet<string> | undefined,
  trans: TranslationBundle
): string {
  const parts = [`${kindLabel(view.kind, trans)} ${view.name}`];
  if (before) {
    parts.push(trans.__('runs after %1', [...before].join(', ')));
  }
  parts.push(...view.rules.map(rule => ruleSentence(rule, trans)));
  if (view.items) {
    parts.push(itemsSentence(view.items, trans));
  }
  if (view.kind === 'group') {
    parts.push(trans._n('%1 node', '%1 nodes', view.count));
  } else if (view.isFolded || view.inner) {
    parts.push(trans._n('%1 task', '%1 tasks', view.count));
  }
  if (view.isMissing) {
    parts.push(trans.__('file not found'));
  }
  if (view.problems.length) {
    parts.push(trans._n('%1 problem', '%1 problems', view.problems.length));
  }
  if (view.step) {
    parts.push(stateLabel(trans, view.step.state));
  }
  return parts.join(', ');
}

export function kindLabel(
  kind: INodeView['kind'],
  trans: TranslationBundle
): string {
  switch (kind) {
    case 'notebook':
      return trans.__('Notebook');
    case 'script':
      return trans.__('Script');
    case 'command':
      return trans.__('Command');
    case 'component':
      return trans.__('Component');
    case 'pipeline':
      return trans.__('Pipeline');
    case 'group':
      return trans.__('Group');
  }
}
