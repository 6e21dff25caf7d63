import { Dialog } from '@jupyterlab/apputils';

import '../../style/form.css';

/** Where the keyboard goes when a form is drawn: to its first field, unless it is in one already. */
const FIRST_FIELD = [
  '.jp-Dialog-body :focus',
  '.jp-Dialog-body:not(:has(:focus)) :is(input, select)'
].join();

/**
 * A dialog around a form. Keys that mean something to a field stay with it:
 * Enter is a new line in texts, presses buttons and unfolds what is folded, and
 * what is being composed in an input method is not an answer yet.
 */
export class FormDialog<T> extends Dialog<T> {
  constructor(options: Partial<Dialog.IOptions<T>>) {
    super({ focusNodeSelector: FIRST_FIELD, ...options });
    this.addClass('jp-Convect-dialog');
  }

  override handleEvent(event: globalThis.Event): void {
    if (!(event instanceof KeyboardEvent && isForField(event))) {
      super.handleEvent(event);
    }
  }
}

function isForField({ key, isComposing, target }: KeyboardEvent): boolean {
  if (isComposing) {
    return true;
  }
  if (!(target instanceof Element) || !target.closest('.jp-Dialog-body')) {
    return false;
  }
  return key === 'Enter'
    ? target.matches('textarea, summary, button')
    : key.startsWith('Arrow');
}
