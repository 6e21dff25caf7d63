import { Clipboard } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';

import { focusOn, freePlace } from './actions';
import type { IClip } from './clipboard';
import { copy, paste, readClip } from './clipboard';
import type { IPoint } from './graph';
import { parentsOf } from './graph';
import type { Session } from './session';
import { targets } from './targets';

// A page without access to the system's clipboard still copies between its own files.
let lastClip: IClip | null = null;

export function copyTargets(session: Session): string | null {
  const ids = targets(session);
  if (ids.length === 0) {
    return null;
  }
  lastClip = copy(session.document, ids, session.folder);
  session.announce(session.trans._n('%1 copied.', '%1 copied.', ids.length));
  return JSON.stringify(lastClip, null, 2);
}

export function copyToSystem(session: Session): void {
  const text = copyTargets(session);
  if (text !== null) {
    Clipboard.copyToSystem(text);
  }
}

export function pasteText(
  session: Session,
  text: string | null,
  at?: IPoint
): void {
  const clip = text === null ? lastClip : readClip(text);
  if (clip) {
    pasteClip(session, clip, at);
  }
}

export async function pasteFromSystem(session: Session): Promise<void> {
  let text: string | null = null;
  try {
    text = await navigator.clipboard.readText();
  } catch {
    // Not allowed, or not a secure page: what was copied here last is pasted.
  }
  pasteText(session, text);
}

function pasteClip(session: Session, clip: IClip, at?: IPoint): void {
  const isSame = clip.folder === session.folder;
  const ids = paste(
    session.doc,
    clip,
    at ? { at } : { at: freePlace(session) },
    path =>
      isSame || path.startsWith('/')
        ? path
        : session.relative(PathExt.normalize(PathExt.join(clip.folder, path)))
  );
  session.select(ids.filter(id => !parentsOf(session.document).has(id)));
  session.announce(session.trans._n('%1 pasted.', '%1 pasted.', ids.length));
  focusOn(session, ids[0]);
}

export function duplicate(session: Session): void {
  const ids = targets(session);
  if (ids.length) {
    const clip = copy(session.document, ids, session.folder);
    const made = paste(session.doc, clip, { offset: { x: 40, y: 40 } });
    session.select(made);
    session.announce(
      session.trans._n('%1 node added.', '%1 nodes added.', made.length)
    );
    focusOn(session, made[0]);
  }
}
