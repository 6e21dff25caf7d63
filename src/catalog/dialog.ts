import { Dialog } from '@jupyterlab/apputils';

/** A dialog in which Enter is a new line in texts and unfolds what is folded. */
export class FormDialog<T> extends Dialog<T> {
  override handleEvent(event: globalThis.Event): void {
    const isTheirs =
      event instanceof KeyboardEvent &&
      event.key === 'Enter' &&
      event.target instanceof Element &&
      event.target.matches('textarea, summary');
    if (!isTheirs) {
      super.handleEvent(event);
    }
  }
}
