import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IPlan, IPlanStep } from '../api';
import type { IPlanView, IPlanViewFactory } from '../tokens';
import { loaded } from '../ui/lazy';
import type { IPlanState } from './canvas/PlanCanvas';
import type { IDocument, IGroupNode, Json, Node } from './schema';
import { VERSION } from './schema';
import { Store } from './store';

/** Draws plans on the editor's canvas, read only. */
export class PlanViewFactory implements IPlanViewFactory {
  constructor(private readonly trans: TranslationBundle) {}

  async create(
    plan: IPlan,
    options: { onSelect: (step: string) => void }
  ): Promise<IPlanView> {
    const { PlanCanvas } = await loaded(() => import('./canvas'));
    const state = new Store<IPlanState>({
      steps: {},
      groups: {},
      selected: null
    });
    const widget = ReactWidget.create(
      <PlanCanvas
        document={documentOf(plan)}
        state={state}
        trans={this.trans}
        onSelect={options.onSelect}
      />
    );
    widget.addClass('jp-Convect-planView');
    return {
      widget,
      update: ({ steps, groups = {} }, selected) =>
        state.update({ steps, groups, selected })
    };
  }
}

/** A plan as the document that the canvas knows how to draw. */
export function documentOf(plan: IPlan): IDocument {
  const nodes: { [id: string]: Node } = {};
  const components: { [digest: string]: { [key: string]: Json } } = {};
  const groups = plan.groups ?? [];
  for (const { id, name, after, ...rest } of groups) {
    const members = [...groups, ...plan.steps]
      .filter(({ group }) => group === id)
      .map(member => member.id);
    const rules = rulesIn(rest);
    nodes[id] = {
      kind: 'group',
      name,
      members,
      after: after ?? [],
      ...rules
    };
  }
  for (const step of plan.steps) {
    nodes[step.id] = nodeOf(step);
    if (step.component) {
      components[step.component] = {};
    }
  }
  return { convect: VERSION, name: plan.name, nodes, components };
}

function nodeOf(step: IPlanStep): Node {
  const { kind, name, path, command, component, after } = step;
  const { parameters, image, resources } = step;
  return {
    kind,
    name,
    ...(path ? { path } : {}),
    ...(command?.length ? { command } : {}),
    ...(component ? { component, source: '' } : {}),
    after: after ?? [],
    ...rulesIn(step),
    ...(parameters ? { parameters } : {}),
    ...(image ? { image } : {}),
    ...(resources ? { resources } : {})
  } as Node;
}

/** What a plan makes of a node that is disabled. */
const DISABLED = '${{ false }}';

/** The rules of a step or group of a plan, as a document has them. */
function rulesIn({
  when,
  for_each,
  run_if
}: Pick<IPlanStep, 'when' | 'for_each' | 'run_if'>): Pick<
  IGroupNode,
  'when' | 'for_each' | 'run_if' | 'disabled'
> {
  return {
    ...(when === DISABLED
      ? { disabled: true }
      : when === undefined || when === null
        ? {}
        : { when: String(when) }),
    ...(for_each
      ? {
          for_each: {
            name: for_each.name,
            in: for_each.items as Json[] | string,
            ...(for_each.parallel ? { parallel: for_each.parallel } : {})
          }
        }
      : {}),
    ...(run_if ? { run_if } : {})
  };
}
