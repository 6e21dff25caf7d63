import { focusOn } from './actions';
import { connect } from './edits';
import { nameOf, foldedInto } from './graph';
import { orderRefusal } from './order';
import type { Session } from './session';
import { target as targetOf } from './targets';

/** Start a connection from the focused node; `enter` on another one makes it. */
export function startConnecting(session: Session): void {
  const id = targetOf(session);
  if (id !== undefined && id in session.document.nodes) {
    session.state.update({ connecting: id });
    session.announce(
      session.trans.__(
        'Connecting “%1”. Go to the node that runs after it and press Enter.',
        nameOf(session.document, id)
      )
    );
  }
}

/** End a connection, write a note, or show the properties. */
export function enter(session: Session): void {
  const { connecting } = session.state.value;
  const id = targetOf(session);
  if (connecting !== null) {
    endConnecting(session, connecting, id);
  } else if (id !== undefined && session.document.comments?.[id]) {
    session.canvas?.editNote(id);
  } else {
    session.showProperties(id ?? null);
  }
}

function endConnecting(
  session: Session,
  source: string,
  target: string | undefined
): void {
  const { document, trans } = session;
  if (target === undefined || target === source) {
    return;
  }
  const refused = orderRefusal(document, session.edges, source, target, trans);
  if (refused !== null) {
    session.announce(refused);
  } else {
    connect(session.doc, source, target);
    session.state.update({ connecting: null });
    session.announce(
      trans.__(
        '“%1” runs after “%2” now.',
        nameOf(document, target),
        nameOf(document, source)
      )
    );
  }
}

export function escape(session: Session): void {
  if (session.state.value.connecting !== null) {
    session.state.update({ connecting: null });
    session.announce(session.trans.__('Not connected.'));
  } else {
    session.select([]);
  }
}

export type Direction = 'before' | 'after' | 'up' | 'down' | 'first';

/** Give the keyboard to a node before or after this one, or beside it. */
export function go(session: Session, to: Direction): void {
  const next = neighbourOf(session, targetOf(session), to);
  if (next !== null) {
    session.select([next]);
    focusOn(session, next);
  }
}

function neighbourOf(
  session: Session,
  from: string | undefined,
  to: Direction
): string | null {
  const { boxes, edges } = session;
  const hidden = foldedInto(session.document);
  const shown = [...boxes]
    .filter(([id]) => !hidden.has(id))
    .sort(([, a], [, b]) => a.x - b.x || a.y - b.y);
  if (from === undefined || to === 'first' || !boxes.has(from)) {
    return shown[0]?.[0] ?? null;
  }
  if (to === 'before' || to === 'after') {
    const [near, far] =
      to === 'after'
        ? (['source', 'target'] as const)
        : (['target', 'source'] as const);
    const edge = edges.find(
      item => (hidden.get(item[near]) ?? item[near]) === from
    );
    if (edge) {
      return hidden.get(edge[far]) ?? edge[far];
    }
  }
  return nearest(new Map(shown), from, to);
}

/** The nearest box in a direction. */
function nearest(
  boxes: ReadonlyMap<string, { x: number; y: number }>,
  from: string,
  to: Direction
): string | null {
  const start = boxes.get(from)!;
  let best: string | null = null;
  let least = Infinity;
  for (const [id, box] of boxes) {
    const [dx, dy] = [box.x - start.x, box.y - start.y];
    const [ahead, aside] = {
      after: [dx, dy],
      before: [-dx, dy],
      down: [dy, dx],
      up: [-dy, dx],
      first: [0, 0]
    }[to];
    const distance = ahead + 2 * Math.abs(aside);
    if (id !== from && ahead > 0 && distance < least) {
      best = id;
      least = distance;
    }
  }
  return best;
}
