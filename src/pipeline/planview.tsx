import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IPlan, IPlanStep } from '../api';
import type { IPlanView, IPlanViewFactory } from '../tokens';
import type { IDocument, Json, Node } from './schema';
import { VERSION } from './schema';
import { Store } from './store';

/** Draws plans on the editor's canvas, read only. */
export class PlanViewFactory implements IPlanViewFactory {
  constructor(private readonly trans: TranslationBundle) {}

  async create(
    plan: IPlan,
    options: { onSelect: (step: string) => void }
  ): Promise<IPlanView> {
    const { PlanCanvas } = await import('./canvas');
    const state = new Store({ steps: {}, selected: null as string | null });
    const widget = ReactWidget.create(
      <PlanCanvas
        document={documentOf(plan)}
        state={state}
        trans={this.trans}
        onSelect={options.onSelect}
      />
    );
    widget.addClass('jp-Pipeline-planView');
    return {
      widget,
      update: (steps, selected) => state.update({ steps, selected })
    };
  }
}

/** A plan as the document that the canvas knows how to draw. */
export function documentOf(plan: IPlan): IDocument {
  const nodes: { [id: string]: Node } = {};
  const components: { [digest: string]: { [key: string]: Json } } = {};
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
    ...(parameters ? { parameters } : {}),
    ...(image ? { image } : {}),
    ...(resources ? { resources } : {})
  } as Node;
}
