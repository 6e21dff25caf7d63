import { MimeData } from '@lumino/coreutils';

import type { IComponentDrop } from '../pipeline/actions';
import { COMPONENT } from '../pipeline/ids';
import { startDrag } from '../ui/dragging';
import type { CatalogModel } from './model';
import type { IEntry } from './types';

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
  let text: string | null = null;
  const { stop } = startDrag(event, entry.name, () => {
    if (text === null) {
      return null;
    }
    const mimeData = new MimeData();
    mimeData.setData(COMPONENT, text);
    return mimeData;
  });
  load().then(
    loaded => {
      text = loaded;
    },
    () => stop()
  );
}
