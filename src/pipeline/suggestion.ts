import { PathExt } from '@jupyterlab/coreutils';

import type { IProblem } from '../api';
import type { PipelineDoc } from './model';
import type { IDocument, Json } from './schema';
import { isObject } from './serialize';

/** A change of a property of a node that would mend a problem. */
export interface ISuggestion {
  /** What was meant, as people see it. */
  text: string;
  node: string;
  /** Properties, by their keys below the node; undefined for one that is to go. */
  changes: { path: string[]; value: Json | undefined }[];
}

/** What the hint of a problem takes for what was meant, where the node can be changed so. */
export function suggestionFor(
  document: IDocument,
  problem: IProblem
): ISuggestion | null {
  const { node, message, hint } = problem;
  const [, text] = /^Did you mean “?([^”]+?)”?\?/.exec(hint ?? '') ?? [];
  const path = (problem.path ?? []).map(String);
  if (!text || !node || path.length === 0) {
    return null;
  }
  // The path of a file is said from the root, and written from the folder of the pipeline.
  const wrong = [...message.matchAll(/“([^”]+)”/g)].flatMap(([, word]) => [
    word,
    PathExt.basename(word)
  ]);
  const top = document.nodes[node] as unknown as Json | undefined;
  const key = path[path.length - 1];
  const value = valueAt(top, path);
  if (wrong.includes(key) && value !== undefined) {
    const right = [...path.slice(0, -1), text];
    return {
      text,
      node,
      changes: [
        { path, value: undefined },
        { path: right, value }
      ]
    };
  }
  const mended = (item: Json): Json => {
    const word = wrong.find(
      each => typeof item === 'string' && item.includes(each)
    );
    return word === undefined ? item : String(item).replace(word, text);
  };
  // A list is written as a whole.
  const list = valueAt(top, path.slice(0, -1));
  const [place, old, better] = Array.isArray(list)
    ? [path.slice(0, -1), list, list.map(mended)]
    : [path, value, value === undefined ? undefined : mended(value)];
  return JSON.stringify(old) === JSON.stringify(better)
    ? null
    : { text, node, changes: [{ path: place, value: better }] };
}

function valueAt(top: Json | undefined, path: string[]): Json | undefined {
  return path.reduce<Json | undefined>(
    (inside, key) =>
      isObject(inside)
        ? inside[key]
        : Array.isArray(inside)
          ? inside[Number(key)]
          : undefined,
    top
  );
}

/** Take a suggestion, as one step of undo. */
export function takeSuggestion(
  doc: PipelineDoc,
  suggestion: ISuggestion
): void {
  doc.edit(draft => {
    for (const { path, value } of suggestion.changes) {
      draft.set(['nodes', suggestion.node, ...path], value);
    }
  });
}
