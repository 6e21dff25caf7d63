import { freeId, idsOf } from './edits';
import { mapNodes } from './expressions';
import type { IPoint } from './graph';
import { isGroup, membersOf, moved, pointOf } from './graph';
import type { PipelineDoc } from './model';
import type { IComment, IDocument, Json, Node, Place } from './schema';
import { isObject } from './serialize';

/** Part of a pipeline, as it travels between files. */
export interface IClip {
  'convect-clip': 1;
  nodes: { [id: string]: Node };
  comments: { [id: string]: IComment };
  layout: { [id: string]: Place };
  components: { [digest: string]: Json };
  /** The folder that paths are relative to. */
  folder: string;
}

/** What was chosen, with the members of its groups and the components it uses. */
export function copy(
  document: IDocument,
  ids: Iterable<string>,
  folder: string
): IClip {
  const chosen = new Set(ids);
  for (const id of [...chosen]) {
    const node = document.nodes[id];
    if (node && isGroup(node)) {
      membersOf(document, id).forEach(member => chosen.add(member));
    }
  }
  const pick = <T>(items: { [id: string]: T } = {}) =>
    Object.fromEntries(Object.entries(items).filter(([id]) => chosen.has(id)));
  const nodes = pick(document.nodes);
  const digests = new Set(
    Object.values(nodes).map(node =>
      node.kind === 'component' ? node.component : ''
    )
  );
  return {
    'convect-clip': 1,
    nodes,
    comments: pick(document.comments),
    layout: pick(document.layout),
    components: Object.fromEntries(
      Object.entries(document.components ?? {}).filter(([digest]) =>
        digests.has(digest)
      )
    ),
    folder
  };
}

/** The clip in a text from the clipboard, if there is one. */
export function readClip(text: string): IClip | null {
  try {
    const value = JSON.parse(text);
    return isObject(value) &&
      value['convect-clip'] === 1 &&
      [value.nodes, value.comments, value.layout, value.components].every(
        isObject
      )
      ? (value as unknown as IClip)
      : null;
  } catch {
    return null;
  }
}

/**
 * Put a clip into a document, moved by `offset` or to `at`. Gives the new ids.
 *
 * Edges inside the clip stay; those that come from outside stay only when the
 * node they come from is in this document too, as it is after a cut or a
 * duplicate in the same file. `rebase` turns a path that was relative to the
 * clip's folder into one relative to this file's.
 */
export function paste(
  doc: PipelineDoc,
  clip: IClip,
  place: { offset: IPoint } | { at: IPoint },
  rebase: (path: string) => string = path => path
): string[] {
  const document = doc.snapshot;
  const taken = new Set(idsOf(document));
  const names = new Map<string, string>();
  for (const id of [
    ...Object.keys(clip.nodes),
    ...Object.keys(clip.comments)
  ]) {
    const free = freeId(wish => taken.has(wish), id);
    taken.add(free);
    names.set(id, free);
  }
  const rename = (id: string) =>
    names.get(id) ?? (id in document.nodes ? id : null);
  const renameAll = (ids: readonly string[] = []) =>
    ids.map(rename).filter(id => id !== null);
  const offset = 'offset' in place ? place.offset : offsetTo(clip, place.at);

  doc.edit(draft => {
    for (const [digest, definition] of Object.entries(clip.components)) {
      draft.put('components', digest, definition);
    }
    for (const [id, node] of Object.entries(clip.nodes)) {
      const changed = mapNodes(node as unknown as Json, rename) as {
        [key: string]: Json;
      };
      keepRules(changed, node, rename);
      if (isGroup(node)) {
        changed.members = node.members
          .map(member => names.get(member))
          .filter(member => member !== undefined);
      }
      if (node.after) {
        const after = renameAll(node.after);
        if (after.length) {
          changed.after = after;
        } else {
          delete changed.after;
        }
      }
      if (typeof changed.path === 'string') {
        changed.path = rebase(changed.path);
      }
      draft.put('nodes', names.get(id)!, changed);
    }
    for (const [id, comment] of Object.entries(clip.comments)) {
      const about = renameAll(comment.about);
      draft.put('comments', names.get(id)!, {
        ...comment,
        about: about.length ? about : undefined
      });
    }
    for (const [id, spot] of Object.entries(clip.layout)) {
      const point = pointOf(spot);
      const name = names.get(id);
      if (point && name) {
        const to = { x: point.x + offset.x, y: point.y + offset.y };
        draft.put('layout', name, moved(spot, to));
      }
    }
  });
  return [...names.values()];
}

/** A rule stays whole: what was decided by a node that is not here is to be mended. */
function keepRules(
  changed: { [key: string]: Json },
  node: Node,
  rename: (id: string) => string | null
): void {
  for (const rule of ['when', 'for_each'] as const) {
    const value = node[rule] as Json | undefined;
    if (value !== undefined) {
      changed[rule] = mapNodes(value, id => rename(id) ?? id)!;
    }
  }
}

function offsetTo(clip: IClip, at: IPoint): IPoint {
  const points = Object.values(clip.layout)
    .map(pointOf)
    .filter(point => point !== null);
  const left = Math.min(...points.map(point => point.x));
  const top = Math.min(...points.map(point => point.y));
  return points.length ? { x: at.x - left, y: at.y - top } : { x: 0, y: 0 };
}
