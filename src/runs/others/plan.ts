import type { IGroup, IOthersRunView, IPlan, IStep } from '../../api';

type Unit = IOthersRunView['groups'][number];

/** A run that was made elsewhere, as a plan that can be drawn. */
export function planOf(view: IOthersRunView): IPlan {
  return {
    name: view.name,
    steps: view.steps.map(step => ({
      ...rulesOf(step),
      kind: 'command',
      command: [step.image],
      image: step.image
    })),
    groups: view.groups.map(rulesOf)
  };
}

function rulesOf({ id, name, after, group, when, loops }: Unit) {
  return {
    id,
    name,
    after,
    ...(group ? { group } : {}),
    ...(when ? { when } : {}),
    ...(loops ? { for_each: { name: 'item', items: [] } } : {})
  };
}

/** How each part of it is, as the drawing takes it. */
export function statesOf(view: IOthersRunView): {
  steps: Record<string, IStep>;
  groups: Record<string, IGroup>;
} {
  const nothing = { reason: null, started: null, ended: null };
  const steps = view.steps.map(({ id, state }): [string, IStep] => [
    id,
    {
      ...nothing,
      id,
      state,
      attempts: [],
      progress: null,
      parameters: {},
      outputs: {},
      metrics: {},
      cache: null,
      source: null
    }
  ]);
  const groups = view.groups.map(({ id, state }): [string, IGroup] => [
    id,
    {
      ...nothing,
      id,
      state,
      node: id,
      item: [],
      by_rule: state === 'skipped',
      items: null,
      counts: {},
      stopping: false
    }
  ]);
  return {
    steps: Object.fromEntries(steps),
    groups: Object.fromEntries(groups)
  };
}
