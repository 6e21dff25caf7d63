import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type {
  Axis,
  IMetrics,
  IParameter,
  IRequest,
  IRuntime,
  ISweepRequest
} from '../../api';
import { parseAxis, parseValue, sizeOf, textOf } from './values';

/** One parameter as it stands in the form; null stands for the default. */
export interface IEntry {
  text: string | null;
  several: boolean;
}

/** All that the form asks, as typed: this is what is remembered for a file. */
export interface IChoice {
  runtime: string;
  name: string;
  parameters: Record<string, IEntry>;
  options: JSONObject;
  kernel: string;
  image: string;
  cpu: string;
  memory: string;
  gpu: string;
  gpuType: string;
  env: string;
  secrets: string;
  dependencies: string;
  outputs: string;
  /** Empty: what the pipeline says, or its own copy of the folder. */
  workingFolder: string;
  retries: string;
  timeout: string;
  mode: 'grid' | 'random';
  samples: string;
  concurrency: string;
  /** Empty: by itself, where that is plain. */
  goal: '' | 'none' | 'max' | 'min';
  metric: string;
}

export const EMPTY_CHOICE: IChoice = {
  runtime: 'local',
  name: '',
  parameters: {},
  options: {},
  kernel: '',
  image: '',
  cpu: '',
  memory: '',
  gpu: '',
  gpuType: '',
  env: '',
  secrets: '',
  dependencies: '',
  outputs: '',
  workingFolder: '',
  retries: '',
  timeout: '',
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
  /** The document is what will lie at the path once it is saved. */
  isInEditor?: boolean;
  /** It was run before. */
  isAgain?: boolean;
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
  runtime: IRuntime | undefined,
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
  const settings = settingsOf(choice, runtime, errors, trans);
  const request: IRequest = {
    ...(subject.path !== null ? { path: subject.path } : {}),
    ...(subject.document ? { document: subject.document } : {}),
    runtime: choice.runtime,
    ...(choice.name.trim() ? { name: choice.name.trim() } : {}),
    ...(filled(values) ? { parameters: values } : {}),
    ...(filled(settings) ? { settings } : {}),
    ...(filled(choice.options) ? { options: choice.options } : {})
  };
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

/** The settings of the pipeline document that the form speaks of. */
function settingsOf(
  choice: IChoice,
  runtime: IRuntime | undefined,
  errors: Record<string, string>,
  trans: TranslationBundle
): JSONObject {
  const has = (feature: string) =>
    runtime?.features.some(name => name === feature) ?? false;
  const settings: JSONObject = {};
  const resources: JSONObject = {};
  if (choice.kernel.trim()) {
    settings.kernel = choice.kernel.trim();
  }
  if (has('image') && choice.image.trim()) {
    settings.image = choice.image.trim();
  }
  if (has('cpu') && choice.cpu.trim()) {
    resources.cpu = choice.cpu.trim();
  }
  if (has('memory') && choice.memory.trim()) {
    resources.memory = choice.memory.trim();
  }
  if (has('gpu')) {
    const count = Number(choice.gpu);
    if (!(count >= 0)) {
      errors.gpu = trans.__('Give a number.');
    } else if (count > 0) {
      const type = choice.gpuType.trim();
      resources.gpu = type ? { count, type } : count;
    }
  }
  if (filled(resources)) {
    settings.resources = resources;
  }
  const env = pairs(choice.env);
  if (env === null) {
    errors.env = trans.__('Give one NAME=value a line.');
  } else if (filled(env)) {
    settings.env = env;
  }
  if (has('secrets')) {
    const secrets = secretsOf(choice.secrets);
    if (secrets === null) {
      errors.secrets = trans.__('Give one NAME=secret/key a line.');
    } else if (secrets.length > 0) {
      settings.secrets = secrets;
    }
  }
  for (const field of ['dependencies', 'outputs'] as const) {
    const globs = lines(choice[field]);
    if (globs.length > 0) {
      settings[field] = globs;
    }
  }
  if (choice.workingFolder) {
    settings.working_folder = choice.workingFolder;
  }
  const retries = whole(choice.retries, 'retries', 0, errors, trans);
  if (retries) {
    settings.retries = retries;
  }
  if (choice.timeout.trim()) {
    settings.timeout = choice.timeout.trim();
  }
  return settings;
}

/** The choice that asks for what an earlier run was asked: a clone starts from here. */
export function choiceOf(request: IRequest): IChoice {
  const settings = (request.settings ?? {}) as JSONObject;
  const resources = (settings.resources ?? {}) as JSONObject;
  const gpu = resources.gpu as number | JSONObject | undefined;
  const text = (value: JSONValue | undefined) => textOf(value);
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
    kernel: text(settings.kernel),
    image: text(settings.image),
    cpu: text(resources.cpu),
    memory: text(resources.memory),
    gpu: typeof gpu === 'object' ? text(gpu.count) : text(gpu),
    gpuType: typeof gpu === 'object' ? text(gpu.type) : '',
    env: Object.entries((settings.env ?? {}) as JSONObject)
      .map(([name, value]) => `${name}=${textOf(value)}`)
      .join('\n'),
    secrets: ((settings.secrets ?? []) as JSONObject[])
      .map(({ env, name, key }) => `${env}=${name}/${key}`)
      .join('\n'),
    dependencies: ((settings.dependencies ?? []) as string[]).join('\n'),
    outputs: ((settings.outputs ?? []) as string[]).join('\n'),
    workingFolder: text(settings.working_folder),
    retries:
      typeof settings.retries === 'object'
        ? text((settings.retries as JSONObject).count)
        : text(settings.retries),
    timeout: text(settings.timeout)
  };
}

function lines(text: string): string[] {
  return text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '');
}

function pairs(text: string): Record<string, string> | null {
  const found: Record<string, string> = {};
  for (const line of lines(text)) {
    const pair = /^([A-Za-z_]\w*)\s*=(.*)$/.exec(line);
    if (!pair) {
      return null;
    }
    found[pair[1]] = pair[2].trim();
  }
  return found;
}

function secretsOf(text: string): JSONObject[] | null {
  const found = pairs(text);
  if (!found) {
    return null;
  }
  const secrets: JSONObject[] = [];
  for (const [env, place] of Object.entries(found)) {
    const parts = /^([^/]+)\/(.+)$/.exec(place);
    if (!parts) {
      return null;
    }
    secrets.push({ env, name: parts[1], key: parts[2] });
  }
  return secrets;
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

function filled(object: object): boolean {
  return Object.keys(object).length > 0;
}
