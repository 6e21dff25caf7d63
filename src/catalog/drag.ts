import { MimeData } from '@lumino/coreutils';
import { Drag } from '@lumino/dragdrop';

import type { IComponentDrop } from '../pipeline/actions';
import { COMPONENT } from '../pipeline/ids';
import type { CatalogModel } from './model';
import type { IEntry } from './types';

/** How far the pointer moves before a press becomes a drag, in pixels. */
const THRESHOLD = 5;

/** A pointer may also be taken away, as by a touch that scrolls. */
const ENDS = ['pointerup', 'pointercancel'] as const;

/** What a drag to the canvas carries, and what the editor's command takes. */
export async function dropOf(
  model: CatalogModel,
  { digest, name, source }: IEntry
): Promise<string> {
  const { definition } = await model.component(digest);
  const drop = { digest, definition, name, source };
  return JSON.stringify(drop as IComponentDrop);
}

/**
 * Begin to drag a component when the pointer moves with its button down.
 *
 * What a drag carries has to be there before it begins, and a drop cannot wait:
 * the definition is asked for at once, and the drag begins as soon as it is
 * here and the pointer has moved.
 */
export function dragComponent(
  event: React.PointerEvent,
  entry: IEntry,
  load: () => Promise<string>
): void {
  if (event.button !== 0 || !entry.digest) {
    return;
  }
  const from = { x: event.clientX, y: event.clientY };
  let text: string | null = null;
  load().then(
    loaded => {
      text = loaded;
    },
    () => stop()
  );
  const onMove = (move: PointerEvent) => {
    const distance = Math.hypot(move.clientX - from.x, move.clientY - from.y);
    if (text === null || distance < THRESHOLD) {
      return;
    }
    stop();
    const mimeData = new MimeData();
    mimeData.setData(COMPONENT, text);
    const drag = new Drag({
      mimeData,
      dragImage: imageOf(entry.name),
      supportedActions: 'copy',
      proposedAction: 'copy'
    });
    void drag.start(move.clientX, move.clientY).then(() => drag.dispose());
  };
  const stop = () => {
    document.removeEventListener('pointermove', onMove, true);
    ENDS.forEach(type => document.removeEventListener(type, stop, true));
  };
  document.addEventListener('pointermove', onMove, true);
  ENDS.forEach(type => document.addEventListener(type, stop, true));
}

function imageOf(name: string): HTMLElement {
  const image = document.createElement('div');
  image.className = 'jp-Convect-dragImage';
  image.textContent = name;
  return image;
}
