import { isGroup, ownerOf } from './graph';
import type { Session } from './session';
import { isGraph } from './views';

/** What the next action is about: the focused node, unless it is one of the selected. */
export function targets(session: Session): string[] {
  const { selection } = session.state.value;
  const focused = focusedId(session, 'node');
  return focused !== null && !selection.has(focused)
    ? [focused]
    : [...selection];
}

/** Those of them that are nodes, not notes. */
export function nodeTargets(session: Session): string[] {
  return targets(session).filter(id => id in session.document.nodes);
}

/** The one node that the keyboard is on, the menu was opened on, or is selected first. */
export function target(session: Session): string | undefined {
  const { selection } = session.state.value;
  const focused = focusedId(session, 'node');
  if (focused !== null) {
    return focused;
  }
  const { pointed } = session;
  return pointed !== null && selection.has(pointed)
    ? pointed
    : [...selection][0];
}

/** The node or the line that has the keyboard. */
export function focusedId(
  session: Session,
  kind: 'node' | 'edge'
): string | null {
  const item = document.activeElement?.closest<HTMLElement>(
    `.react-flow__${kind}`
  );
  const id = item?.closest(`[data-convect-session="${session.id}"]`)
    ? item.dataset.id
    : undefined;
  return id === undefined ? null : kind === 'node' ? ownerOf(id) : id;
}

/** A group, or a component (or a task in one) that consists of others. */
export function canFold(session: Session, id: string): boolean {
  const { nodes, components } = session.document;
  const node = nodes[id];
  if (node === undefined) {
    return id !== ownerOf(id);
  }
  return (
    isGroup(node) ||
    (node.kind === 'component' && isGraph(components?.[node.component]))
  );
}
