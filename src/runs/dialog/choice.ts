import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import type {
  IMetrics,
  IParameter,
  IRequest,
  ISelection,
  ISweepRequest
} from '../../api';
import { textOf } from '../../settings/parametervalues';
import type { IEntry, ISweepChoice } from '../../settings/sweepchoice';
import {
  countOfRuns,
  EMPTY_SWEEP,
  readEntries,
  sweepOf
} from '../../settings/sweepchoice';
import { compact, isObject } from '../../ui/json';

/** All that the form asks: this is what is remembered for a file. */
export interface IChoice extends ISweepChoice {
  runtime: string;
  name: string;
  parameters: Record<string, IEntry>;
  options: JSONObject;
  /** In the vocabulary of the document, as the request has them. */
  settings: JSONObject;
  labels: Record<string, string>;
  /** Results of earlier runs may be taken over. */
  useCache: boolean;
}

export const EMPTY_CHOICE: IChoice = {
  runtime: '',
  name: '',
  parameters: {},
  options: {},
  settings: {},
  labels: {},
  useCache: true,
  ...EMPTY_SWEEP
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
  const given = readEntries(parameters, choice.parameters, choice, trans);
  const { values, errors } = given;
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
  const sweep = sweepOf(given, choice, trans, metrics);
  return sweep
    ? {
        request,
        sweep: { request, ...sweep },
        size: countOfRuns(sweep),
        errors
      }
    : { request, sweep: null, size: 1, errors };
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

function named<T extends object>(pairs: T): T {
  return Object.fromEntries(
    Object.entries(pairs).filter(([name]) => name !== '')
  ) as T;
}

/** The object, unless there is nothing in it. */
function filled<T extends object>(object: T): T | undefined {
  return Object.keys(object).length > 0 ? object : undefined;
}
