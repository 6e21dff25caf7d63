import type { IGroup, IProblem, IStep, State } from '../api';
import { stepOf } from '../api/types';
import { isLive } from '../ui/states';
import type { IBox, IEdge, StepNode } from './graph';
import { isDisabled, isFolded, isGroup, membersOf, nameOf } from './graph';
import type { Found, IPort } from './ports';
import { portsOf } from './ports';
import type { IDocument, IResources, Json } from './schema';
import type { IItems, Rule } from './rules';
import { rulesOf } from './rules';
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
  /** What decides if, or how often, it runs. */
  rules: Rule[];
  /** How far its loop is in the run that is shown. */
  items?: IItems;
  inputs: IPort[];
  outputs: IPort[];
  problems: readonly IProblem[];
  step?: IStep;
  /** A file or a component definition that is not there. */
  isMissing: boolean;
  /** It, or a group around it, is left out of runs. */
  isDisabled: boolean;
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
  /** Its groups with a rule, its loops, and the pipelines in it. */
  groups?: Readonly<Record<string, IGroup>> | null;
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
    const inLoops = stepsInLoops(around.steps);
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
        around.groups?.[id],
        inLoops
          .get(id)
          ?.map(({ id, state }) => `${id} ${state}`)
          .join(),
        JSON.stringify(countsOf([id], around.groups)?.counts),
        isGraph(definition) && around.unfold,
        isGraph(definition) && around.unfolded,
        isFolded(document, id),
        isDisabled(document, id),
        (outgoing.get(id) ?? [])
          .map(edge => `${edge.kind} ${edge.output}`)
          .join(),
        isGroup(node) ? around.problems : JSON.stringify(own),
        isGroup(node) ? around.steps : null,
        isGroup(node) ? around.groups : null
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
    rules: rulesOf(document.nodes[id]),
    items: itemsOf(around.groups?.[id]),
    inputs: [],
    outputs: [],
    problems: [
      ...problems,
      ...around.problems.filter(problem => inner.has(problem.node ?? ''))
    ],
    step:
      stepOfGroup(around.groups?.[id]) ??
      (around.steps
        ? stepOfItems(
            id,
            members,
            members.flatMap(member =>
              Object.values(partsOf(member, around.steps!))
            ),
            around.groups
          )
        : undefined),
    isMissing: false,
    isDisabled: isDisabled(document, id),
    isFolded: isFolded(document, id),
    count: members.filter(member => !isGroup(document.nodes[member])).length
  };
}

/** A group of a run as the one step that stands for it. */
function stepOfGroup(group: IGroup | undefined): IStep | undefined {
  if (!group) {
    return undefined;
  }
  const { id, state, reason, started, ended } = group;
  const items = itemsOf(group);
  return stepOf({
    id,
    state,
    reason,
    started,
    ended,
    progress: items
      ? { cell: items.done, cells: items.total, elapsed: 0, expected: null }
      : null
  });
}

/** The steps of a run that are there once per item, by the node that they are. */
function stepsInLoops(steps: ISurroundings['steps']): Map<string, IStep[]> {
  const found = new Map<string, IStep[]>();
  for (const step of Object.values(steps ?? {})) {
    if (step.item?.length && step.node !== undefined) {
      const list = found.get(step.node) ?? [];
      list.push(step);
      found.set(step.node, list);
    }
  }
  return found;
}

/** How many steps that nodes in loops have become are in each state, and the loop around them. */
function countsOf(
  nodes: readonly string[],
  groups: ISurroundings['groups']
): { counts: Partial<Record<State, number>>; loop: IGroup } | undefined {
  const counts: Partial<Record<State, number>> = {};
  let loop: IGroup | undefined;
  for (const group of Object.values(groups ?? {})) {
    for (const node of nodes) {
      for (const [state, count] of Object.entries(
        group.members?.[node] ?? {}
      )) {
        counts[state as State] = (counts[state as State] ?? 0) + count;
        loop = group;
      }
    }
  }
  return loop && { counts, loop };
}

/** The steps that nodes in loops have become, as one; a run may show only some of them. */
function stepOfItems(
  id: string,
  nodes: readonly string[],
  shown: readonly IStep[],
  groups: ISurroundings['groups']
): IStep | undefined {
  const summary = summaryOf(id, shown);
  const found = countsOf(nodes, groups);
  if (!found) {
    return summary;
  }
  const { counts, loop } = found;
  const state = LOUDEST.find(each => counts[each]) ?? loop.state;
  const sum = (states: readonly State[]) =>
    states.reduce((all, each) => all + (counts[each] ?? 0), 0);
  const total = sum(LOUDEST);
  const live = sum(LOUDEST.filter(isLive));
  return stepOf({
    id,
    state,
    reason: shown.find(step => step.state === state)?.reason ?? null,
    started: state === 'skipped' ? null : (summary?.started ?? loop.started),
    ended: live > 0 ? null : (summary?.ended ?? loop.ended),
    progress: { cell: total - live, cells: total, elapsed: 0, expected: null }
  });
}

/** How far the items of a loop are, once there are any. */
export function itemsOf(group: IGroup | undefined): IItems | undefined {
  if (!group || group.items === null) {
    return undefined;
  }
  const { items: total, counts } = group;
  const live = Object.entries(counts).filter(([state]) =>
    isLive(state as State)
  );
  const left = live.reduce((sum, [, count]) => sum + count, 0);
  return { total, counts, done: total - left };
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
  'succeeded',
  'cached',
  'skipped'
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
  return stepOf({
    id,
    state,
    reason,
    started: started.length ? Math.min(...started) : null,
    ended: ended.length === steps.length ? Math.max(...ended) : null,
    progress: { cell: done, cells: steps.length, elapsed: 0, expected: null }
  });
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
    rules: rulesOf(node),
    items: itemsOf(around.groups?.[id]),
    ...portsOf(id, node, found, definition, edges),
    problems,
    step:
      stepOfGroup(around.groups?.[id]) ??
      around.steps?.[id] ??
      stepOfItems(
        id,
        [id],
        stepsInLoops(around.steps).get(id) ?? [],
        around.groups
      ),
    isMissing:
      node.kind === 'component'
        ? definition === undefined
        : found !== undefined && 'error' in found && found.isMissing,
    isDisabled: isDisabled(document, id),
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
    Object.entries(steps).filter(([step, { node = step }]) =>
      [step, node].some(name => name === id || name.startsWith(`${id}.`))
    )
  );
}

function subtitleOf(node: StepNode): string {
  switch (node.kind) {
    case 'notebook':
    case 'script':
    case 'pipeline':
      return node.path ?? '';
    case 'command':
      return Array.isArray(node.command) ? node.command.join(' ') : '';
    case 'component':
      return node.source ?? '';
  }
}

function badgesOf(document: IDocument, node: StepNode): IBadge[] {
  const badges: IBadge[] = [];
  if (node.kind === 'pipeline') {
    return badges;
  }
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
