import { PathExt } from '@jupyterlab/coreutils';
import type { JSONObject, JSONValue } from '@lumino/coreutils';
import { JSONExt } from '@lumino/coreutils';

import type {
  IDefinition,
  IParameter,
  IProblem,
  ParameterType
} from '../../api';
import { compact, isObject } from '../../ui/json';
import type { IOutcome, ISubject } from './choice';

const SCRIPTS = ['.py', '.r', '.sh'];

export function isNotebook(path: string): boolean {
  return PathExt.extname(path).toLowerCase() === '.ipynb';
}

export function isScript(path: string): boolean {
  return SCRIPTS.includes(PathExt.extname(path).toLowerCase());
}

export function isPipeline(path: string): boolean {
  return PathExt.extname(path).toLowerCase() === '.pipeline';
}

/** A parameter file of DLC, which runs as what it is converted to. */
export function isParams(path: string): boolean {
  return PathExt.extname(path).toLowerCase() === '.params';
}

/** A file, and what it lets one choose. */
export interface IFile {
  path: string;
  parameters: readonly IParameter[];
}

/** What a run of files is called. */
export function nameOf(paths: readonly string[]): string {
  const stems = paths.map(path =>
    PathExt.basename(path, PathExt.extname(path))
  );
  return stems.length > 3
    ? `${stems.slice(0, 2).join(', ')} +${stems.length - 2}`
    : stems.join(', ');
}

/**
 * Files as one pipeline, one after the other or side by side. Their parameters
 * are the pipeline's; those of one name and default are one parameter.
 */
export function pipelineOf(
  files: readonly IFile[],
  isChain: boolean
): JSONObject {
  const nodes: JSONObject = {};
  const layout: JSONObject = {};
  const parameters: JSONObject = {};
  const all = files.flatMap(file => file.parameters);
  let before: string | null = null;
  files.forEach(({ path, parameters: own }, index) => {
    const id = freeId(path, nodes);
    const passed: JSONObject = {};
    // What is computed by the file itself stays its own.
    for (const item of own.filter(isChosen)) {
      const twins = all.filter(({ name }) => name === item.name);
      const isShared = twins.every(twin => isSame(twin, item));
      const name = isShared ? item.name : `${id}_${item.name}`;
      parameters[name] = declarationOf(item);
      passed[item.name] = '${{ parameters.' + name + ' }}';
    }
    nodes[id] = compact({
      kind: isNotebook(path) ? 'notebook' : 'script',
      path,
      after: isChain && before !== null ? [before] : undefined,
      parameters: Object.keys(passed).length > 0 ? passed : undefined
    }) as JSONObject;
    layout[id] = isChain ? [index * 320, 0] : [0, index * 120];
    before = id;
  });
  return compact({
    convect: 1,
    name: nameOf(files.map(({ path }) => path)),
    parameters: Object.keys(parameters).length > 0 ? parameters : undefined,
    nodes,
    layout
  }) as JSONObject;
}

function isChosen({ default: value, required }: IParameter): boolean {
  return required || value !== null;
}

function isSame(a: IParameter, b: IParameter): boolean {
  return a.type === b.type && JSONExt.deepEqual(a.default, b.default);
}

function declarationOf(parameter: IParameter): JSONObject {
  const { type, default: value, help, choices, required } = parameter;
  return compact({
    type: type ?? undefined,
    default: value ?? undefined,
    description: help ?? undefined,
    choices: choices.length > 0 ? choices : undefined,
    required: required || undefined
  }) as JSONObject;
}

/** What the form says, as a pipeline to keep: the parameters can be chosen for each run. */
export function documentOf(
  subject: ISubject,
  { request }: Pick<IOutcome, 'request'>,
  parameters: readonly IParameter[]
): JSONObject {
  const chosen = parameters.map(item => {
    const value = request.parameters?.[item.name];
    return value === undefined ? item : { ...item, default: value };
  });
  const path = PathExt.basename(subject.path ?? '');
  const document =
    subject.document ?? pipelineOf([{ path, parameters: chosen }], true);
  const { defaults, nodes, layout, ...head } = document;
  const merged = withDefaults(
    (defaults ?? {}) as JSONObject,
    request.settings ?? {}
  );
  return compact({
    ...head,
    name: request.name ?? head.name,
    defaults: Object.keys(merged).length > 0 ? merged : undefined,
    nodes,
    layout
  }) as JSONObject;
}

/** Defaults with the settings of a run over them, as a run itself merges them. */
function withDefaults(defaults: JSONObject, settings: JSONObject): JSONObject {
  const merged = { ...defaults };
  for (const [key, value] of Object.entries(settings)) {
    const old = merged[key];
    merged[key] =
      isObject(old) && isObject(value)
        ? withDefaults(old, value)
        : Array.isArray(old) && Array.isArray(value)
          ? [...old, ...value.filter(item => !isIn(item, old))]
          : value;
  }
  return merged;
}

function isIn(item: JSONValue, list: readonly JSONValue[]): boolean {
  return list.some(other => JSONExt.deepEqual(item, other));
}

/** An id made of the name of a file, unlike those taken. */
function freeId(path: string, taken: object): string {
  const stem = PathExt.basename(path, PathExt.extname(path));
  const plain = stem.replace(/[^\p{L}\p{N}_-]+/gu, '-').replace(/^-+|-+$/g, '');
  const base = plain.slice(0, 50) || 'node';
  let id = base;
  for (let number = 2; id in taken; number += 1) {
    id = `${base}-${number}`;
  }
  return id;
}

/** The parameters that a pipeline declares, as a notebook would tell of its own. */
export function declaredIn(parameters: JSONObject | undefined): IParameter[] {
  return Object.entries(parameters ?? {}).map(([name, declared]) => {
    const declaration = declared as JSONObject;
    const value = declaration.default ?? null;
    return {
      name,
      type: (declaration.type as ParameterType | undefined) ?? null,
      default: value,
      source: value === null ? null : JSON.stringify(value),
      help: (declaration.description as string | undefined) ?? null,
      choices: (declaration.choices as IParameter['choices']) ?? [],
      required: declaration.required === true && value === null
    };
  });
}

/** The definition of the component whose approval a problem is about. */
export function unapproved(
  { document, content }: ISubject,
  { code, node }: IProblem
): IDefinition | null {
  if (code !== 'component-not-approved') {
    return null;
  }
  const { nodes, components } = document ?? content ?? {};
  // The parts of a graph are approved with it.
  const id = (node ?? '').split('.')[0];
  const owner = isObject(nodes) ? nodes[id] : null;
  const digest = isObject(owner) ? owner.component : null;
  const found =
    isObject(components) && typeof digest === 'string'
      ? components[digest]
      : null;
  return isObject(found) ? (found as unknown as IDefinition) : null;
}
