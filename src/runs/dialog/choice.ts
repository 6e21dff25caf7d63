import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type {
  Axis,
  IMetrics,
  IParameter,
  IRequest,
  ISelection,
  ISweepRequest
} from '../../api';
import { compact, isObject } from '../../ui/json';
import { parseAxis, parseValue, sizeOf, textOf } from './values';

/** One parameter as it stands in the form; null stands for the default. */
export interface IEntry {
  text: string | null;
  several: boolean;
}

/** All that the form asks: this is what is remembered for a file. */
export interface IChoice {
  runtime: string;
  name: string;
  parameters: Record<string, IEntry>;
  options: JSONObject;
  /** In the vocabulary of the document, as the request has them. */
  settings: JSONObject;
  labels: Record<string, string>;
  /** Results of earlier runs may be taken over. */
  useCache: boolean;
  mode: 'grid' | 'random';
  samples: string;
  concurrency: string;
  /** Empty: by itself, where that is plain. */
  goal: '' | 'none' | 'max' | 'min';
  metric: string;
}

export const EMPTY_CHOICE: IChoice = {
  runtime: '',
  name: '',
  parameters: {},
  options: {},
  settings: {},
  labels: {},
  useCache: true,
  mode: 'grid',
  samples: '10',
  concurrency: '',
  goal: '',
  metric: ''
};

/** What is run: a file, a pipeline made up of several, or a file as it is in the editor. */
export interface ISubject {
  path: string | null;
  document: JSONObject | null;
  /** The pipeline as far as it can be read, whether or not it is sent along. */
  content?: JSONObject | null;
  /** The document is what will lie at the path once it is saved. */
  isInEditor?: boolean;
  /** It was run before. */
  isAgain?: boolean;
  /** The part of it that is run, and the run whose results the rest is taken from. */
  select?: ISelection;
  of?: string;
  /** What could not be taken over from the file it was converted from. */
  notes?: readonly string[];
  title: string;
}

/** What a choice amounts to. */
export interface IOutcome {
  request: IRequest;
  /** Null unless some parameter has several values. */
  sweep: ISweepRequest | null;
  /** How many runs it makes. */
  size: number;
  /** What is wrong with which field. */
  errors: Record<string, string>;
}

export function outcomeOf(
  subject: ISubject,
  choice: IChoice,
  parameters: readonly IParameter[],
  trans: TranslationBundle,
  metrics: IMetrics | null = null
): IOutcome {
  const errors: Record<string, string> = {};
  const values: JSONObject = {};
  const space: Record<string, Axis> = {};
  for (const parameter of parameters) {
    const { name, type } = parameter;
    const entry = choice.parameters[name];
    if (!entry || entry.text === null) {
      if (parameter.required) {
        errors[`parameter ${name}`] = trans.__('It has no default: give one.');
      }
      continue;
    }
    const parsed = entry.several
      ? parseAxis(type, entry.text, choice.mode, trans)
      : parseValue(type, entry.text, trans);
    if ('error' in parsed) {
      errors[`parameter ${name}`] = parsed.error;
    } else if (entry.several) {
      space[name] = parsed.value as Axis;
    } else {
      values[name] = parsed.value as JSONValue;
    }
  }
  // A name that is being typed is none yet.
  const settings: JSONObject = { ...choice.settings };
  for (const key of ['env', 'metrics']) {
    const pairs = settings[key];
    if (isObject(pairs)) {
      settings[key] = named(pairs);
    }
  }
  const request: IRequest = compact({
    path: subject.path ?? undefined,
    document: subject.document ?? undefined,
    runtime: choice.runtime,
    name: choice.name.trim() || undefined,
    parameters: filled(values),
    settings: filled(settings),
    options: filled(choice.options),
    labels: filled(named(choice.labels)),
    use_cache: choice.useCache ? undefined : false,
    select: subject.select,
    of: subject.of
  });
  if (!filled(space)) {
    return { request, sweep: null, size: 1, errors };
  }
  const samples = whole(choice.samples, 'samples', 1, errors, trans);
  const concurrency = whole(
    choice.concurrency,
    'concurrency',
    1,
    errors,
    trans
  );
  const random = choice.mode === 'random';
  const select = selectOf(choice, metrics, errors, trans);
  return {
    request,
    sweep: {
      request,
      space,
      mode: choice.mode,
      ...(random && samples !== null ? { samples } : {}),
      ...(concurrency !== null ? { concurrency } : {}),
      ...(select ? { select } : {})
    },
    size: random ? (samples ?? 1) : sizeOf(Object.values(space)),
    errors
  };
}

/** Which run is to be marked as the best; null leaves that to the server. */
function selectOf(
  { goal, metric }: IChoice,
  metrics: IMetrics | null,
  errors: Record<string, string>,
  trans: TranslationBundle
): string | null {
  const name = metric.trim();
  if (goal === '' || goal === 'none') {
    return goal || null;
  }
  if (!name) {
    errors.metric = trans.__('Name the metric.');
  } else if (metrics?.complete && !metrics.names.includes(name)) {
    errors.metric =
      metrics.names.length > 0
        ? trans.__('It reports no %1, but %2.', name, metrics.names.join(', '))
        : trans.__('It reports no metric.');
  }
  return `${goal}:${name}`;
}

/** The choice that asks for what an earlier run was asked: a clone starts from here. */
export function choiceOf(request: IRequest): IChoice {
  return {
    ...EMPTY_CHOICE,
    runtime: request.runtime ?? 'local',
    name: request.name ?? '',
    parameters: Object.fromEntries(
      Object.entries(request.parameters ?? {}).map(([name, value]) => [
        name,
        { text: textOf(value), several: false }
      ])
    ),
    options: request.options ?? {},
    settings: request.settings ?? {},
    labels: request.labels ?? {},
    useCache: request.use_cache ?? true
  };
}

function whole(
  text: string,
  field: string,
  least: number,
  errors: Record<string, string>,
  trans: TranslationBundle
): number | null {
  if (!text.trim()) {
    return null;
  }
  const value = Number(text);
  if (!Number.isInteger(value) || value < least) {
    errors[field] = trans.__('Give a whole number of at least %1.', least);
    return null;
  }
  return value;
}

function named<T extends object>(pairs: T): T {
  return Object.fromEntries(
    Object.entries(pairs).filter(([name]) => name !== '')
  ) as T;
}

/** The object, unless there is nothing in it. */
function filled<T extends object>(object: T): T | undefined {
  return Object.keys(object).length > 0 ? object : undefined;
}
