import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';

import type { IPlanStep, IRunView } from '../../api';
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

/** What the steps of a run reported as metrics, or gave as values; the later step's wins. */
export function resultsOf(
  view: IRunView,
  kind: 'metrics' | 'outputs'
): Properties {
  const steps = view.plan.steps.map(({ id }) => view.steps[id]?.[kind] ?? {});
  return Object.assign({}, ...steps) as Properties;
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
    [trans.__('Git branch')]: view.git?.branch,
    [trans.__('Uncommitted changes')]: view.git?.difference
      ?.replace('sha256:', '')
      .slice(0, 12)
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

/** The sources of two runs that are one: those of the same step, or the only ones. */
export function sameSources(
  a: IRunView,
  b: IRunView
): [IPlanStep, IPlanStep][] {
  const [ours, theirs] = [sourcesOf(a), sourcesOf(b)];
  const same = ours.flatMap(one =>
    theirs
      .filter(({ id, kind }) => id === one.id && kind === one.kind)
      .map((other): [IPlanStep, IPlanStep] => [one, other])
  );
  const [one, other] = [ours[0], theirs[0]];
  const areOnly = ours.length === 1 && theirs.length === 1;
  return same.length === 0 && areOnly && one.kind === other.kind
    ? [[one, other]]
    : same;
}

function sourcesOf(view: IRunView): IPlanStep[] {
  return view.plan.steps.filter(
    ({ kind }) => kind === 'notebook' || kind === 'script'
  );
}
