import type { IProblem, IStep, State } from '../api';
import type { IBox, IEdge, IPoint, StepNode } from './graph';
import {
  foldedInto,
  isFolded,
  isGroup,
  membersOf,
  nameOf,
  pointOf,
  sizeOf
} from './graph';
import { around } from './arrange';
import type { Found, IPort } from './ports';
import { portsOf } from './ports';
import type { IDocument, IResources, Json } from './schema';

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
  isFolded: boolean;
  /** Of a group: how many nodes are in it. */
  count: number;
}

/** What the document alone does not say. */
export interface ISurroundings {
  /** Facts of a file, by its path in the document. */
  found: ReadonlyMap<string, Found>;
  problems: readonly IProblem[];
  /** The steps of the run that is shown, if one is. */
  steps: Readonly<Record<string, IStep>> | null;
}

export const WIDTH = 200;
const HEADER = 48;
const ROW = 20;
const BADGES = 24;
const FOOTER = 22;
const PADDING = 6;

/** The size of a node; the style sheet has the same numbers. */
export function viewSize(view: INodeView): { width: number; height: number } {
  if (view.kind === 'group') {
    return { width: WIDTH, height: HEADER + (view.step ? FOOTER : 0) };
  }
  const rows = Math.max(view.inputs.length, view.outputs.length);
  return {
    width: WIDTH,
    height:
      HEADER +
      (view.badges.length ? BADGES : 0) +
      (rows ? rows * ROW + PADDING : 0) +
      (view.step ? FOOTER : 0)
  };
}

/** How far down a node its ports are; the first one, and the next ones. */
export function portOffset(view: INodeView, index: number): number {
  const above = HEADER + (view.badges.length ? BADGES : 0);
  return above + PADDING / 2 + ROW * (index + 0.5);
}

/** How far down a node the ends of its order are. */
export const ORDER_OFFSET = HEADER / 2;

export const GROUP_MARGIN = { x: 20, top: 40, bottom: 20 };

/** The box of everything on the canvas: nodes, open groups, and notes. */
export function boxesOf(
  document: IDocument,
  views: ReadonlyMap<string, INodeView>
): Map<string, IBox> {
  const boxes = new Map<string, IBox>();
  let row = 0;
  for (const [id, node] of Object.entries(document.nodes)) {
    const view = views.get(id);
    if (view && (!isGroup(node) || view.isFolded)) {
      const at = pointOf(document.layout?.[id]) ?? { x: 0, y: row++ * 120 };
      boxes.set(id, { ...at, ...viewSize(view) });
    }
  }
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
        around.steps?.[id],
        isFolded(document, id),
        (outgoing.get(id) ?? []).map(edge => edge.output).join(),
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
          members.map(member => around.steps![member])
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

/** Several steps as one: the loudest state, and how many are done. */
function summaryOf(
  id: string,
  all: readonly (IStep | undefined)[]
): IStep | undefined {
  const steps = all.filter(step => step !== undefined);
  if (steps.length === 0) {
    return undefined;
  }
  const state = LOUDEST.find(item => steps.some(step => step.state === item))!;
  const done = steps.filter(step => step.ended).length;
  return {
    id,
    state,
    attempts: [],
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
    count: 1
  };
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
