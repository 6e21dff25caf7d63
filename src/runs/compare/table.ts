import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';

import type { IRunView } from '../../api';
import { formatValue } from '../../ui/format';
import { runtimeLabel } from '../../ui/states';

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
export function environmentOf(
  view: IRunView,
  trans: TranslationBundle
): Properties {
  const properties: Properties = {
    [trans.__('Runtime')]: runtimeLabel(trans, view.runtime),
    [trans.__('User')]: view.user,
    [trans.__('Git commit')]: view.git?.commit.slice(0, 12),
    [trans.__('Git branch')]: view.git?.branch
  };
  const several = view.plan.steps.length > 1;
  for (const step of view.plan.steps) {
    const name = (property: string) =>
      several ? `${step.id}: ${property}` : property;
    properties[name(trans.__('Image'))] = step.image;
    properties[name(trans.__('Kernel'))] = step.kernel;
    properties[name(trans.__('Resources'))] = step.resources;
    properties[name(trans.__('Environment variables'))] = step.env;
    properties[name(trans.__('Digest of the source'))] = step.digest
      ?.replace('sha256:', '')
      .slice(0, 12);
  }
  return properties;
}

/** The notebooks of two runs that are one: those of the same step, or the only ones. */
export function sameNotebooks(a: IRunView, b: IRunView): [string, string][] {
  const [ours, theirs] = [notebooksOf(a), notebooksOf(b)];
  const same = ours.filter(id => theirs.includes(id));
  if (same.length === 0 && ours.length === 1 && theirs.length === 1) {
    return [[ours[0], theirs[0]]];
  }
  return same.map(id => [id, id]);
}

function notebooksOf(view: IRunView): string[] {
  return view.plan.steps
    .filter(({ kind }) => kind === 'notebook')
    .map(({ id }) => id);
}
