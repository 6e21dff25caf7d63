import type { IProblem, IStep, State } from '../api';
import type { IBox, IEdge, IPoint, StepNode } from './graph';
import {
  foldedInto,
  isFolded,
  isGroup,
  membersOf,
  nameOf,
  parentsOf,
  pointOf,
  sizeOf
} from './graph';
import { around } from './arrange';
import type { Found, IPort } from './ports';
import { portsOf } from './ports';
import type { IDocument, IResources, Json } from './schema';
import { isObject } from './serialize';

export interface IBadge {
  kind: 'image' | 'cpu' | 'memory' | 'gpu';
  text: string;
  /** It comes from the pipeline's defaults. */
  isDefault: boolean;
}

/** All that the canvas shows of a node. It changes only when that changes. */
export interface INodeView {
  id: string;
  kind: StepNode['kind'] | 'group';
  name: string;
  /** The file, the command or the component. */
  subtitle: string;
  badges: IBadge[];
  inputs: IPort[];
  outputs: IPort[];
  problems: readonly IProblem[];
  step?: IStep;
  /** A file or a component definition that is not there. */
  isMissing: boolean;
  /** A group, or a graph component, that shows as one box. */
  isFolded: boolean;
  /** How many nodes are in a group, or tasks in a graph component. */
  count: number;
  /** What is in a graph component, while it is unfolded. */
  inner?: IInner;
}

/** The tasks of a graph component. Boxes start from the corner of their area. */
export interface IInner {
  views: ReadonlyMap<string, INodeView>;
  boxes: ReadonlyMap<string, IBox>;
  edges: readonly IInnerEdge[];
  width: number;
  height: number;
}

/** A wire in a graph component; an end of it may be the node of the graph itself. */
export interface IInnerEdge {
  id: string;
  kind: IEdge['kind'];
  source: string;
  target: string;
  output?: string;
  input?: string;
}

/** What the document alone does not say. */
export interface ISurroundings {
  /** Facts of a file, by its path in the document. */
  found: ReadonlyMap<string, Found>;
  problems: readonly IProblem[];
  /** The steps of the run that is shown, if one is. */
  steps: Readonly<Record<string, IStep>> | null;
  /** The graph components that are shown with what is in them. */
  unfolded?: ReadonlySet<string>;
  /** It comes with the canvas. */
  unfold?: Unfold | null;
}

export type Unfold = (
  id: string,
  definition: { [key: string]: Json },
  around: ISurroundings
) => IInner;

export const WIDTH = 200;
const HEADER = 48;
const ROW = 20;
const BADGES = 24;
const FOOTER = 22;
const PADDING = 6;
/** Beside what is in a graph component, where the names of its ends are. */
const SIDE = 110;

/** The size of a node; the style sheet has the same numbers. */
export function viewSize(view: INodeView): { width: number; height: number } {
  if (view.kind === 'group') {
    return { width: WIDTH, height: HEADER + (view.step ? FOOTER : 0) };
  }
  const rows = Math.max(view.inputs.length, view.outputs.length);
  const ports = rows ? rows * ROW + PADDING : 0;
  return {
    width: view.inner ? view.inner.width + 2 * SIDE : WIDTH,
    height:
      HEADER +
      badgeRows(view).length * BADGES +
      Math.max(ports, view.inner?.height ?? 0) +
      (view.step ? FOOTER : 0)
  };
}

/** The largest letters in which a name fills a box, for looking at it from far away. */
export function farFontSize(
  name: string,
  { width, height }: { width: number; height: number }
): number {
  // Of letters that are wide the line breaks sooner, and Chinese ones are twice as wide.
  const wide = name.match(/[\u3000-\uffff]/g)?.length ?? 0;
  const units = 0.6 * (name.length - wide) + wide;
  for (let lines = 1; ; lines++) {
    const fit = Math.min(
      ((width - 24) * lines) / Math.max(units, 1),
      (height - 6) / (lines * 1.1)
    );
    const next = Math.min(
      ((width - 24) * (lines + 1)) / Math.max(units, 1),
      (height - 6) / ((lines + 1) * 1.1)
    );
    if (next <= fit) {
      return Math.floor(fit);
    }
  }
}

/** Where, in its node, the area of what is in a graph component begins. */
export function innerCorner(view: INodeView): IPoint {
  return { x: SIDE, y: HEADER + badgeRows(view).length * BADGES };
}

/** What it needs in one row, and the image, which is often long, in another. */
export function badgeRows({ badges }: INodeView): IBadge[][] {
  return [
    badges.filter(badge => badge.kind !== 'image'),
    badges.filter(badge => badge.kind === 'image')
  ].filter(row => row.length > 0);
}

/** How far down a node its ports are; the first one, and the next ones. */
export function portOffset(view: INodeView, index: number): number {
  const above = HEADER + badgeRows(view).length * BADGES;
  return above + PADDING / 2 + ROW * (index + 0.5);
}

/** How far down a node the ends of its order are. */
export const ORDER_OFFSET = HEADER / 2;

/** Between nodes that nobody has placed. */
const BELOW = 60;

export const GROUP_MARGIN = { x: 20, top: 40, bottom: 20 };

/** The box of everything on the canvas: nodes, open groups, and notes. */
export function boxesOf(
  document: IDocument,
  views: ReadonlyMap<string, INodeView>
): Map<string, IBox> {
  const boxes = new Map<string, IBox>();
  const unplaced: string[] = [];
  for (const [id, node] of Object.entries(document.nodes)) {
    const view = views.get(id);
    if (view && (!isGroup(node) || view.isFolded)) {
      const at = pointOf(document.layout?.[id]);
      if (at) {
        boxes.set(id, { ...at, ...viewSize(view) });
      } else {
        unplaced.push(id);
      }
    }
  }
  placeBelow(document, views, boxes, unplaced);
  for (const id of Object.keys(document.comments ?? {})) {
    const place = document.layout?.[id];
    const size = sizeOf(place) ?? { width: 200, height: 100 };
    boxes.set(id, { ...(pointOf(place) ?? { x: 0, y: -140 }), ...size });
  }
  const hidden = foldedInto(document);
  for (const [id, node] of Object.entries(document.nodes)) {
    if (isGroup(node) && !isFolded(document, id)) {
      const members = membersOf(document, id)
        .filter(member => !hidden.has(member))
        .map(member => boxes.get(member))
        .filter(box => box !== undefined);
      const at = pointOf(document.layout?.[id]) ?? { x: 0, y: 0 };
      boxes.set(id, groupBox(members, at));
    }
  }
  return boxes;
}

/**
 * Nodes that nobody has placed go below all others, those of a group next to
 * each other, so that no frame lies around what is not in it.
 */
function placeBelow(
  document: IDocument,
  views: ReadonlyMap<string, INodeView>,
  boxes: Map<string, IBox>,
  ids: readonly string[]
): void {
  const parents = parentsOf(document);
  const placed = around([...boxes.values()]);
  let y = placed ? placed.y + placed.height + BELOW : 0;
  let last: string | undefined;
  const home = (id: string) => parents.get(id) ?? '';
  for (const id of [...ids].sort((a, b) => (home(a) < home(b) ? -1 : 1))) {
    if (last !== undefined && last !== home(id)) {
      y += GROUP_MARGIN.top + GROUP_MARGIN.bottom;
    }
    last = home(id);
    const size = viewSize(views.get(id)!);
    boxes.set(id, { x: placed?.x ?? 0, y, ...size });
    y += size.height + BELOW;
  }
}

/** The frame of an open group around its members. */
export function groupBox(members: readonly IBox[], at: IPoint): IBox {
  const inner = around(members);
  if (!inner) {
    return { ...at, width: WIDTH, height: 100 };
  }
  const { x, top, bottom } = GROUP_MARGIN;
  return {
    x: inner.x - x,
    y: inner.y - top,
    width: inner.width + 2 * x,
    height: inner.height + top + bottom
  };
}

/** Makes views, and gives the same object again while nothing in it changes. */
export class ViewMaker {
  make(
    document: IDocument,
    edges: readonly IEdge[],
    around: ISurroundings
  ): Map<string, INodeView> {
    const problems = new Map<string, IProblem[]>();
    for (const problem of around.problems) {
      if (problem.node) {
        const list = problems.get(problem.node) ?? [];
        problems.set(problem.node, [...list, problem]);
      }
    }
    const outgoing = new Map<string, IEdge[]>();
    for (const edge of edges) {
      const list = outgoing.get(edge.source) ?? [];
      outgoing.set(edge.source, [...list, edge]);
    }
    const views = new Map<string, INodeView>();
    const before = this._made;
    this._made = new Map();
    for (const [id, node] of Object.entries(document.nodes)) {
      const path = 'path' in node ? node.path : undefined;
      const digest = node.kind === 'component' ? node.component : undefined;
      const own = problems.get(id) ?? NONE;
      const definition = digest ? document.components?.[digest] : undefined;
      const key: readonly unknown[] = [
        node,
        document.defaults,
        path === undefined ? undefined : around.found.get(path),
        definition,
        isGraph(definition) ? around.steps : around.steps?.[id],
        isGraph(definition) && around.unfold,
        isGraph(definition) && around.unfolded,
        isFolded(document, id),
        (outgoing.get(id) ?? [])
          .map(edge => `${edge.kind} ${edge.output}`)
          .join(),
        isGroup(node) ? around.problems : JSON.stringify(own),
        isGroup(node) ? around.steps : null
      ];
      const made = before.get(id);
      const view =
        made && made.key.every((item, index) => item === key[index])
          ? made.view
          : isGroup(node)
            ? groupView(document, id, own, around)
            : stepView(
                document,
                id,
                node,
                outgoing.get(id) ?? [],
                own,
                around,
                definition
              );
      this._made.set(id, { key, view });
      views.set(id, view);
    }
    return views;
  }

  private _made = new Map<
    string,
    { key: readonly unknown[]; view: INodeView }
  >();
}

const NONE: readonly IProblem[] = [];

function groupView(
  document: IDocument,
  id: string,
  problems: readonly IProblem[],
  around: ISurroundings
): INodeView {
  const members = membersOf(document, id);
  const inner = new Set(members);
  return {
    id,
    kind: 'group',
    name: nameOf(document, id),
    subtitle: '',
    badges: [],
    inputs: [],
    outputs: [],
    problems: [
      ...problems,
      ...around.problems.filter(problem => inner.has(problem.node ?? ''))
    ],
    step: around.steps
      ? summaryOf(
          id,
          members.flatMap(member =>
            Object.values(partsOf(member, around.steps!))
          )
        )
      : undefined,
    isMissing: false,
    isFolded: isFolded(document, id),
    count: members.filter(member => !isGroup(document.nodes[member])).length
  };
}

/** The states that show first when several steps are one box. */
const LOUDEST: readonly State[] = [
  'failed',
  'lost',
  'running',
  'starting',
  'queued',
  'waiting',
  'cancelled',
  'skipped',
  'succeeded',
  'cached'
];

/** Of several steps, the one to look at first. */
export function loudest(steps: readonly IStep[]): IStep | undefined {
  return [...steps].sort(
    (one, two) => LOUDEST.indexOf(one.state) - LOUDEST.indexOf(two.state)
  )[0];
}

/** Several steps as one: the loudest state, and how many are done. */
function summaryOf(id: string, steps: readonly IStep[]): IStep | undefined {
  if (steps.length === 0) {
    return undefined;
  }
  const { state, reason } = loudest(steps)!;
  const done = steps.filter(step => step.ended).length;
  const started = steps.flatMap(step => step.started ?? []);
  const ended = steps.flatMap(step => step.ended ?? []);
  return {
    id,
    state,
    reason,
    started: started.length ? Math.min(...started) : undefined,
    ended: ended.length === steps.length ? Math.max(...ended) : undefined,
    attempts: [],
    parameters: {},
    outputs: {},
    metrics: {},
    progress: { cell: done, cells: steps.length, elapsed: 0 }
  };
}

function stepView(
  document: IDocument,
  id: string,
  node: StepNode,
  edges: readonly IEdge[],
  problems: readonly IProblem[],
  around: ISurroundings,
  definition: Json | undefined
): INodeView {
  const found = 'path' in node ? around.found.get(node.path) : undefined;
  return {
    id,
    kind: node.kind,
    name: nameOf(document, id),
    subtitle: subtitleOf(node),
    badges: badgesOf(document, node),
    ...portsOf(id, node, found, definition, edges),
    problems,
    step: around.steps?.[id],
    isMissing:
      node.kind === 'component'
        ? definition === undefined
        : found !== undefined && 'error' in found && found.isMissing,
    isFolded: false,
    count: 1,
    ...(isGraph(definition) ? graphParts(id, definition, around) : {})
  };
}

/** A component that consists of others: `graph` of its definition says of which. */
export function isGraph(
  definition: Json | undefined
): definition is { [key: string]: Json } {
  return isObject(definition) && isObject(definition.graph);
}

/** A graph component runs as several steps, which show as one or each for itself. */
function graphParts(
  id: string,
  definition: { [key: string]: Json },
  around: ISurroundings
): Partial<INodeView> {
  const { tasks } = definition.graph as { tasks?: Json };
  const isUnfolded = around.unfolded?.has(id) ?? false;
  return {
    step: around.steps
      ? summaryOf(id, Object.values(partsOf(id, around.steps)))
      : undefined,
    isFolded: !isUnfolded,
    count: isObject(tasks) ? Object.keys(tasks).length : 0,
    inner: isUnfolded ? around.unfold?.(id, definition, around) : undefined
  };
}

/** The steps that a node has become: its own, or those of its tasks. */
export function partsOf(
  id: string,
  steps: Readonly<Record<string, IStep>>
): Record<string, IStep> {
  return Object.fromEntries(
    Object.entries(steps).filter(
      ([step]) => step === id || step.startsWith(`${id}.`)
    )
  );
}

function subtitleOf(node: StepNode): string {
  switch (node.kind) {
    case 'notebook':
    case 'script':
      return node.path ?? '';
    case 'command':
      return Array.isArray(node.command) ? node.command.join(' ') : '';
    case 'component':
      return node.source ?? '';
  }
}

function badgesOf(document: IDocument, node: StepNode): IBadge[] {
  const badges: IBadge[] = [];
  const own: IResources = node.resources ?? {};
  const inherited: IResources = document.defaults?.resources ?? {};
  const add = (kind: IBadge['kind'], mine: unknown, theirs: unknown) => {
    const text = amountText(mine) || amountText(theirs);
    if (text && text !== '0') {
      badges.push({ kind, text, isDefault: !amountText(mine) });
    }
  };
  add('gpu', gpuText(own.gpu), gpuText(inherited.gpu));
  add('cpu', own.cpu, inherited.cpu);
  add('memory', own.memory, inherited.memory);
  add('image', imageText(node.image), imageText(document.defaults?.image));
  return badges;
}

function amountText(amount: unknown): string {
  if (amount && typeof amount === 'object') {
    const { request, limit } = amount as { request?: Json; limit?: Json };
    return String(request ?? limit ?? '');
  }
  return amount === undefined || amount === null ? '' : String(amount);
}

function gpuText(gpu: IResources['gpu']): string {
  if (gpu && typeof gpu === 'object') {
    const count = String(gpu.count ?? 1);
    return gpu.type ? `${count} × ${gpu.type}` : count;
  }
  return gpu ? String(gpu) : '';
}

/** The last part of an image's name, which tells most. */
function imageText(image: string | undefined): string {
  return image ? image.slice(image.lastIndexOf('/') + 1) : '';
}
