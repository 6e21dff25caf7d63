import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';

import type { IPlanStep, IRunView } from '../../api';
import { asNumber } from '../../api/numbers';
import { formatValue } from '../../ui/format';
import { runtimeLabel } from '../../ui/states';

/** A property of several runs, side by side. */
export interface IComparedLine {
  name: string;
  values: string[];
  differs: boolean;
  /** Which of them is the best, where the name of a metric says what that is. */
  best?: number | null;
  /** How far the numbers are apart. */
  difference?: string;
}

type Properties = Record<string, ReadonlyJSONValue | undefined | null>;

/** One line for each name that any of them has. */
export function linesOf(columns: readonly Properties[]): IComparedLine[] {
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

/** The most names that tell a run from the others. */
const MOST_NAMES = 3;

/** What of its values tells one from the others, which often have the same name. */
export function toldApart(
  lines: readonly IComparedLine[],
  index: number
): string {
  return lines
    .filter(({ differs, values }) => differs && values[index] !== '')
    .slice(0, MOST_NAMES)
    .map(({ name, values }) => `${name}=${values[index]}`)
    .join(', ');
}

/** Names for runs: those of one name are told apart by their parameters, or else by their ids. */
export function namesOf(
  views: readonly Pick<IRunView, 'id' | 'name' | 'parameters'>[]
): string[] {
  const lines = linesOf(views.map(view => view.parameters as Properties));
  const isTwin = (name: string, index: number, names: readonly string[]) =>
    names.some((other, at) => other === name && at !== index);
  return views
    .map(({ name }) => name)
    .map((name, index, names) =>
      isTwin(name, index, names)
        ? `${name} ${toldApart(lines, index)}`.trim()
        : name
    )
    .map((name, index, names) =>
      isTwin(name, index, names) ? `${name} ${views[index].id}` : name
    );
}

/** Metrics: those that are numbers with the best of them, and how far they are apart. */
export function metricLines(views: readonly IRunView[]): IComparedLine[] {
  const columns = views.map(view => resultsOf(view, 'metrics'));
  const goals: Record<string, string> = Object.assign(
    {},
    ...views.map(view => view.goals)
  );
  return linesOf(columns).map(line => {
    const numbers = columns.map(column => asNumber(column[line.name]));
    return {
      ...line,
      best: bestOf(numbers, goals[line.name]),
      difference: differenceOf(numbers)
    };
  });
}

/** Null where nothing is better than the rest; what is not a finite number never is. */
export function bestOf(
  numbers: readonly number[],
  goal: string | undefined
): number | null {
  const finite = numbers.filter(Number.isFinite);
  if (!goal || finite.length < 2 || new Set(finite).size < 2) {
    return null;
  }
  const best = goal === 'min' ? Math.min(...finite) : Math.max(...finite);
  const first = numbers.indexOf(best);
  return numbers.indexOf(best, first + 1) < 0 ? first : null;
}

/** `+0.02 (+4 %)` from the first to the second; of more, from the lowest to the highest. */
export function differenceOf(numbers: readonly number[]): string {
  const finite = numbers.filter(Number.isFinite);
  if (finite.length < 2) {
    return '';
  }
  const [from, to] =
    numbers.length === 2 ? finite : [Math.min(...finite), Math.max(...finite)];
  const by = to - from;
  const share =
    from === 0 ? '' : ` (${signed((by / Math.abs(from)) * 100, 3)} %)`;
  return by === 0 ? '0' : `${signed(by, 5)}${share}`;
}

function signed(value: number, digits: number): string {
  const text = String(Number(Math.abs(value).toPrecision(digits)));
  return `${value < 0 ? '−' : '+'}${text}`;
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

/** The id under which a run executed a step: in a loop, that of one of its items. */
export function executedStep(view: IRunView, { id }: IPlanStep): string {
  if (view.steps[id]) {
    return id;
  }
  const items = Object.values(view.steps).filter(step => step.node === id);
  const begun = items.find(({ started }) => started !== null) ?? items[0];
  return begun?.id ?? id;
}

function sourcesOf(view: IRunView): IPlanStep[] {
  return view.plan.steps.filter(
    ({ kind }) => kind === 'notebook' || kind === 'script'
  );
}
