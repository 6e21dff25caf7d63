import type { ReadonlyJSONValue } from '@lumino/coreutils';

import type { IRunView } from '../../api';
import { formatValue } from '../../ui/format';

/** A property of several runs, side by side. */
export interface ILine {
  name: string;
  values: string[];
  differs: boolean;
}

type Properties = Record<string, ReadonlyJSONValue | undefined | null>;

/** One line for each name that any of them has. */
export function linesOf(columns: readonly Properties[]): ILine[] {
  const names = [...new Set(columns.flatMap(Object.keys))];
  return names
    .map(name => {
      const values = columns.map(column =>
        formatValue(column[name] ?? undefined)
      );
      return { name, values, differs: new Set(values).size > 1 };
    })
    .filter(({ values }) => values.some(value => value !== ''));
}

/** Where and from what a run was made, step by step where there are several. */
export function environmentOf(view: IRunView): Properties {
  const properties: Properties = {
    runtime: view.runtime,
    user: view.user,
    'git commit': view.git?.commit.slice(0, 12),
    'git branch': view.git?.branch
  };
  const several = view.plan.steps.length > 1;
  for (const step of view.plan.steps) {
    const name = (property: string) =>
      several ? `${step.id}: ${property}` : property;
    properties[name('image')] = step.image;
    properties[name('kernel')] = step.kernel;
    properties[name('resources')] = step.resources;
    properties[name('environment')] = step.env;
    properties[name('source')] = step.digest
      ?.replace('sha256:', '')
      .slice(0, 12);
  }
  return properties;
}
