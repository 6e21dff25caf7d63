import { ReactWidget } from '@jupyterlab/ui-components';
import type { Drag } from '@lumino/dragdrop';
import type { Message } from '@lumino/messaging';

import { addComponent, addPaths, removeTargets } from '../actions';
import { copyTargets, pasteText } from '../copying';
import { COMPONENT } from '../ids';
import type { Session } from '../session';

/** What the file browser puts on its drags: paths, with the drive's prefix. */
const FILES = 'application/x-jupyter-icontents';

const DRAG_EVENTS = ['lm-dragenter', 'lm-dragover', 'lm-dragleave', 'lm-drop'];
const CLIPBOARD_EVENTS = ['copy', 'cut', 'paste'];

/**
 * The canvas as a Lumino widget, for events that React never sees: drags from
 * the file browser and from the catalog, and the clipboard.
 */
export class CanvasHost extends ReactWidget {
  constructor(
    private readonly session: Session,
    private readonly content: JSX.Element
  ) {
    super();
    this.addClass('jp-Convect-canvasHost');
  }

  protected override render(): JSX.Element {
    return this.content;
  }

  handleEvent(event: globalThis.Event): void {
    if (event instanceof ClipboardEvent) {
      this.onClipboard(event);
    } else {
      this.onDrag(event as Drag.Event);
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    // What is dropped beside the canvas is meant for it, too.
    this._dropArea = this.parent?.node ?? this.node;
    DRAG_EVENTS.forEach(type => this._dropArea.addEventListener(type, this));
    CLIPBOARD_EVENTS.forEach(type => this.node.addEventListener(type, this));
  }

  protected override onBeforeDetach(msg: Message): void {
    DRAG_EVENTS.forEach(type => this._dropArea.removeEventListener(type, this));
    CLIPBOARD_EVENTS.forEach(type => this.node.removeEventListener(type, this));
    super.onBeforeDetach(msg);
  }

  private onDrag(event: Drag.Event): void {
    const { mimeData } = event;
    const isOurs = mimeData.hasData(FILES) || mimeData.hasData(COMPONENT);
    // Everything else, such as a tab being moved, is for others.
    if (!isOurs || this.session.isReadOnly) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
    this.toggleClass(
      'jp-mod-dropTarget',
      event.type === 'lm-dragenter' || event.type === 'lm-dragover'
    );
    if (event.type === 'lm-dragover' || event.type === 'lm-drop') {
      event.dropAction = event.proposedAction;
    }
    if (event.type === 'lm-drop') {
      this.drop(event);
    }
  }

  private drop(event: Drag.Event): void {
    const { session } = this;
    const isOnCanvas = this.node.contains(event.target as HTMLElement);
    const at = isOnCanvas
      ? session.canvas?.toDocument({ x: event.clientX, y: event.clientY })
      : undefined;
    if (event.mimeData.hasData(COMPONENT)) {
      addComponent(session, String(event.mimeData.getData(COMPONENT)), at);
    } else {
      const paths = event.mimeData.getData(FILES) as string[];
      addPaths(
        session,
        paths.map(path => session.contents.localPath(path)),
        at
      );
    }
  }

  private onClipboard(event: ClipboardEvent): void {
    const target = event.target as HTMLElement;
    if (target.closest('input, textarea, [contenteditable]')) {
      return;
    }
    if (event.type === 'paste') {
      if (!this.session.isReadOnly) {
        pasteText(
          this.session,
          event.clipboardData?.getData('text/plain') ?? null
        );
      }
    } else {
      const text = copyTargets(this.session);
      if (text === null) {
        return;
      }
      event.clipboardData?.setData('text/plain', text);
      if (event.type === 'cut' && !this.session.isReadOnly) {
        removeTargets(this.session);
      }
    }
    event.preventDefault();
    event.stopPropagation();
  }

  private _dropArea = this.node;
}
