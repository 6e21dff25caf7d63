import type {
  IGroup,
  ILoopItem,
  IPlan,
  IPlanGroup,
  IPlanStep,
  IRunView,
  IStep
} from '../../api';

type Unit = IPlanStep | IPlanGroup;

/** A line of the overview of a run. */
export interface IOutlineRow {
  id: string;
  name: string;
  /** How deep in groups and loops it is. */
  depth: number;
  step?: IStep;
  group?: IGroup;
  /** The item of a loop whose steps follow. */
  item?: ILoopItem;
  planned?: IPlanStep;
}

/** The item of a loop that is looked at. */
export interface IOpenItem {
  loop: string;
  item: ILoopItem;
}

/**
 * The steps and groups in the order of the plan. A loop is one line, followed by the
 * steps of the one item that is looked at.
 */
export function outlineOf(
  view: IRunView,
  open: IOpenItem | null = null
): IOutlineRow[] {
  const { plan, steps, groups = {} } = view;
  const rows: IOutlineRow[] = [];
  const children = childrenOf(plan);
  const walk = (parent: string | null, depth: number) => {
    for (const unit of children.get(parent) ?? []) {
      const { id, name } = unit;
      const planned = 'kind' in unit ? unit : undefined;
      const group = groups[id];
      if (group) {
        rows.push({ id, name, depth, group, planned });
        if (unit.for_each) {
          rows.push(...openItem(view, id, depth + 1, open));
        } else {
          walk(id, depth + 1);
        }
      } else if (steps[id]) {
        rows.push({ id, name, depth, step: steps[id], planned });
      }
    }
  };
  walk(null, 0);
  return rows;
}

/** The line of the item that is looked at and what is in it, if it is one of this loop. */
function openItem(
  view: IRunView,
  loop: string,
  depth: number,
  open: IOpenItem | null
): IOutlineRow[] {
  if (!open || (open.loop !== loop && !open.loop.startsWith(`${loop}.`))) {
    return [];
  }
  const { item } = open;
  const steps = Object.values(item.steps);
  const inner = Object.values(view.groups ?? {}).filter(
    group => group.items !== null && group.id.startsWith(`${item.id}.`)
  );
  const isOwn = steps.length === 1 && steps[0].id === item.id;
  const named = (node: string | undefined) =>
    view.plan.steps.find(({ id }) => id === node) ??
    view.plan.groups?.find(({ id }) => id === node);
  const rowOf = (step: IStep): IOutlineRow => ({
    id: step.id,
    name: named(step.node)?.name ?? step.id,
    depth: depth + 1,
    step,
    planned: view.plan.steps.find(({ id }) => id === step.node)
  });
  return [
    {
      id: item.id,
      name: item.id,
      depth,
      item,
      ...(isOwn ? { step: steps[0], planned: rowOf(steps[0]).planned } : {})
    },
    ...(isOwn
      ? []
      : steps
          .filter(({ id }) => !inner.some(loop => id.startsWith(`${loop.id}.`)))
          .map(rowOf)),
    ...inner.map(group => ({
      id: group.id,
      name: named(group.node)?.name ?? group.id,
      depth: depth + 1,
      group
    }))
  ];
}

/** What is in each group; groups stand where the first of their steps does. */
function childrenOf(plan: IPlan): Map<string | null, Unit[]> {
  const groups = new Map((plan.groups ?? []).map(group => [group.id, group]));
  const children = new Map<string | null, Unit[]>();
  const seen = new Set<string>();
  const add = (unit: Unit) => {
    if (seen.has(unit.id)) {
      return;
    }
    seen.add(unit.id);
    const outer = groups.get(unit.group ?? '');
    if (outer) {
      add(outer);
    }
    const key = outer?.id ?? null;
    children.set(key, [...(children.get(key) ?? []), unit]);
  };
  plan.steps.forEach(add);
  groups.forEach(add);
  return children;
}

/** The loop that a step is an item of, or in an item of, and which one. */
export function loopOf(
  plan: IPlan,
  step: Pick<IStep, 'node' | 'item'>
): { loop: string; index: number } | null {
  const { node, item = [] } = step;
  if (node === undefined || item.length === 0) {
    return null;
  }
  const loop = loopsAround(plan, node)[item.length - 1];
  return loop === undefined
    ? null
    : {
        loop: nameOf(plan, loop, item.slice(0, -1)),
        index: item[item.length - 1]
      };
}

/** The same for the id of a step that the run may not show. */
export function placeOf(
  view: IRunView,
  id: string
): { loop: string; index: number } | null {
  const item = (id.match(/(?<=\.)\d+(?=\.|$)/g) ?? []).map(Number);
  return loopOf(view.plan, { node: plannedOf(view, id)?.id, item });
}

function unitOf(plan: IPlan, id: string): Unit | undefined {
  return (
    plan.groups?.find(group => group.id === id) ??
    plan.steps.find(step => step.id === id)
  );
}

/** The loops around a unit, the outermost first, with its own. */
function loopsAround(plan: IPlan, id: string): string[] {
  const loops: string[] = [];
  let unit = unitOf(plan, id);
  while (unit) {
    if (unit.for_each) {
      loops.unshift(unit.id);
    }
    unit = unit.group ? unitOf(plan, unit.group) : undefined;
  }
  return loops;
}

/** The id of a unit for items of the loops around it: `outer.3.inner`. */
function nameOf(plan: IPlan, id: string, item: readonly number[]): string {
  if (item.length === 0) {
    return id;
  }
  const around = loopsAround(plan, id).filter(loop => loop !== id);
  const inner = around[item.length - 1];
  const outer = `${nameOf(plan, inner, item.slice(0, -1))}.${item[item.length - 1]}`;
  const own = id.startsWith(`${inner}.`) ? id.slice(inner.length + 1) : id;
  return `${outer}.${own}`;
}

/** The step of the plan that a step of the run is: without the numbers of items in its path. */
export function plannedOf(view: IRunView, id: string): IPlanStep | undefined {
  const { steps } = view.plan;
  const path = id.replace(/\.\d+(?=\.|$)/g, '');
  const node = view.steps[id]?.node;
  return (
    steps.find(step => step.id === (node ?? id)) ??
    steps.find(step => step.id === path || path.endsWith(`.${step.id}`))
  );
}
