import { PathExt } from '@jupyterlab/coreutils';
import type { JSONObject } from '@lumino/coreutils';

import type { IParameter } from '../../api';
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

/** Several files as one pipeline, side by side. */
export function pipelineOf(name: string, paths: readonly string[]): JSONObject {
  const nodes: JSONObject = {};
  const layout: JSONObject = {};
  paths.forEach((path, index) => {
    const id = freeId(path, nodes);
    nodes[id] = { kind: isNotebook(path) ? 'notebook' : 'script', path };
    layout[id] = [0, index * 100];
  });
  return { convect: 1, name, nodes, layout };
}

/** What the form says, as a pipeline to keep: the parameters can be chosen for each run. */
export function documentOf(
  subject: ISubject,
  outcome: IOutcome,
  parameters: readonly IParameter[]
): JSONObject {
  const { request } = outcome;
  const settings = request.settings ?? {};
  const extra: JSONObject =
    Object.keys(settings).length > 0 ? { defaults: settings } : {};
  if (subject.document) {
    return { ...subject.document, ...extra };
  }
  const path = PathExt.basename(subject.path ?? '');
  const id = freeId(path, {});
  const declared: JSONObject = {};
  const passed: JSONObject = {};
  for (const { name, type, default: value, help } of parameters) {
    const chosen = request.parameters?.[name] ?? value;
    declared[name] = {
      ...(type ? { type } : {}),
      ...(chosen !== null && chosen !== undefined ? { default: chosen } : {}),
      ...(help ? { description: help } : {})
    };
    passed[name] = '${{ parameters.' + name + ' }}';
  }
  const some = parameters.length > 0;
  return {
    convect: 1,
    name: request.name ?? PathExt.basename(path, PathExt.extname(path)),
    ...((some ? { parameters: declared } : {}) as JSONObject),
    ...extra,
    nodes: {
      [id]: {
        kind: isNotebook(path) ? 'notebook' : 'script',
        path,
        ...((some ? { parameters: passed } : {}) as JSONObject)
      }
    },
    layout: { [id]: [0, 0] }
  };
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
