import type { MimeData } from '@lumino/coreutils';
import { Drag } from '@lumino/dragdrop';

import '../../style/dragging.css';

/** How far the pointer moves before a press becomes a drag, in pixels. */
const THRESHOLD = 5;

/** A pointer may also be taken away, as by a touch that scrolls. */
const ENDS = ['pointerup', 'pointercancel'] as const;

/**
 * Begin to drag something when the pointer moves with its button down, as soon as there is
 * what the drag carries. `dropped` is called if somebody has taken it.
 */
export function startDrag(
  event: React.PointerEvent,
  name: string,
  carried: () => MimeData | null,
  dropped: () => void = () => undefined
): { stop: () => void } {
  const from = { x: event.clientX, y: event.clientY };
  const onMove = (move: PointerEvent) => {
    const distance = Math.hypot(move.clientX - from.x, move.clientY - from.y);
    const mimeData = distance < THRESHOLD ? null : carried();
    if (mimeData === null) {
      return;
    }
    stop();
    const drag = new Drag({
      mimeData,
      dragImage: imageOf(name),
      supportedActions: 'copy',
      proposedAction: 'copy'
    });
    void drag.start(move.clientX, move.clientY).then(action => {
      drag.dispose();
      if (action !== 'none') {
        dropped();
      }
    });
  };
  const stop = () => {
    document.removeEventListener('pointermove', onMove, true);
    ENDS.forEach(type => document.removeEventListener(type, stop, true));
  };
  document.addEventListener('pointermove', onMove, true);
  ENDS.forEach(type => document.addEventListener(type, stop, true));
  return { stop };
}

function imageOf(name: string): HTMLElement {
  const image = document.createElement('div');
  image.className = 'jp-Convect-dragImage';
  image.textContent = name;
  return image;
}
