import { focusOn } from './actions';
import type { Alignment } from './positions';
import { align, move } from './positions';
import * as edits from './edits';
import {
  isFolded,
  isGroup,
  isInside,
  isOpenGroup,
  nameOf,
  parentsOf,
  pointOf
} from './graph';
import type { Session } from './session';
import { canFold, targets } from './targets';

/** Move by arrow keys; steps that follow each other are undone together. */
export function nudge(session: Session, dx: number, dy: number): void {
  const { document, boxes } = session;
  const ids = targets(session);
  const parents = parentsOf(document);
  const all = [...boxes.keys()].filter(
    id => ids.includes(id) || ids.some(outer => isInside(parents, id, outer))
  );
  const places = new Map(
    all
      .filter(id => !isOpenGroup(document, id))
      .map(id => {
        const { x, y } = boxes.get(id)!;
        return [id, { x: x + dx, y: y + dy }];
      })
  );
  move(session.doc, places, `nudge:${ids.join()}`);
  const [first] = places.values();
  if (first) {
    session.announce(
      session.trans.__(
        'Moved to %1, %2.',
        Math.round(first.x),
        Math.round(first.y)
      )
    );
  }
}

export function alignTargets(session: Session, how: Alignment): void {
  const boxes = session.boxes;
  const chosen = new Map(
    targets(session)
      .filter(id => boxes.has(id))
      .map(id => [id, boxes.get(id)!])
  );
  if (chosen.size > 1) {
    move(session.doc, align(chosen, how));
  }
}

/** Lay out everything, or what is selected when that is more than one. */
export async function autoLayout(session: Session): Promise<void> {
  const { layOut } = await import('./layout');
  const { selection } = session.state.value;
  const only = selection.size > 1 ? selection : null;
  const places = layOut(session.document, session.boxes, session.edges, only);
  move(session.doc, places);
  if (!only) {
    requestAnimationFrame(() => session.canvas?.fit());
  }
  session.announce(session.trans.__('Laid out.'));
}

export function groupTargets(session: Session): void {
  const ids = targets(session).filter(id => id in session.document.nodes);
  if (ids.length === 0) {
    return;
  }
  const at = session.boxes.get(ids[0]) ?? { x: 0, y: 0 };
  const id = edits.group(session.doc, ids, session.trans.__('Group'), at);
  session.showProperties(id, ['name']);
}

export function ungroupTargets(session: Session): void {
  edits.ungroup(session.doc, targets(session));
}

export function leaveGroup(session: Session): void {
  const parents = parentsOf(session.document);
  const ids = targets(session).filter(id => parents.has(id));
  if (ids.length) {
    putInto(session, ids, null);
  }
}

/** Put nodes into a group, or with null out of the one that they are in, and say so. */
export function putInto(
  session: Session,
  ids: readonly string[],
  target: string | null,
  gesture?: string
): void {
  const { document, trans } = session;
  edits.setGroup(session.doc, ids, target, gesture);
  const names = ids
    .filter(id => id in document.nodes)
    .map(id => `“${nameOf(document, id)}”`)
    .join(', ');
  session.announce(
    target === null
      ? trans.__('%1 is in no group now.', names)
      : trans.__(
          '%1 is in the group “%2” now.',
          names,
          nameOf(document, target)
        )
  );
}

export function toggleFold(session: Session, id: string): void {
  const { document } = session;
  if (!canFold(session, id)) {
    return;
  }
  const node = document.nodes[id];
  const isOfGroup = node !== undefined && isGroup(node);
  const wasFolded = isOfGroup
    ? isFolded(document, id)
    : !session.state.value.unfolded.has(id);
  if (isOfGroup) {
    foldGroup(session, id, wasFolded);
  } else {
    // How a graph component is looked at is nobody else's business.
    const unfolded = new Set(session.state.value.unfolded);
    if (wasFolded) {
      unfolded.add(id);
    } else {
      unfolded.delete(id);
    }
    session.state.update({ unfolded });
  }
  session.announce(
    wasFolded
      ? session.trans.__('“%1” is unfolded.', nameOf(document, id))
      : session.trans.__('“%1” is folded.', nameOf(document, id))
  );
  focusOn(session, id);
}

function foldGroup(session: Session, id: string, wasFolded: boolean): void {
  const { document } = session;
  const box = session.boxes.get(id);
  const at = wasFolded ? pointOf(document.layout?.[id]) : box;
  const place = [Math.round(at?.x ?? 0), Math.round(at?.y ?? 0)];
  session.doc.edit(draft =>
    draft.put('layout', id, wasFolded ? place : { at: place, folded: true })
  );
}
