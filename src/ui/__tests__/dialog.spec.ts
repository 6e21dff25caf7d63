import { Dialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { FormDialog } from '../dialog';

/** A dialog with a body of fields, and what became of it. */
function show(): {
  press: (selector: string, init: KeyboardEventInit) => KeyboardEvent;
  closed: Promise<string | null>;
  dialog: Dialog<unknown>;
} {
  const body = new Widget();
  body.node.innerHTML =
    '<input /><textarea></textarea><button>b</button><details><summary>s</summary></details>';
  const dialog = new FormDialog({ body, buttons: [Dialog.okButton()] });
  const closed = dialog
    .launch()
    .then(({ button }) => (button.accept ? button.label : null));
  return {
    dialog,
    closed,
    press: (selector, init) => {
      const target = body.node.querySelector<HTMLElement>(selector)!;
      target.focus();
      const event = new KeyboardEvent('keydown', {
        bubbles: true,
        cancelable: true,
        ...init
      });
      target.dispatchEvent(event);
      return event;
    }
  };
}

describe('FormDialog', () => {
  it('leaves Enter to texts, buttons and what unfolds', async () => {
    const { press, dialog, closed } = show();
    await dialog.ready;
    for (const selector of ['textarea', 'button', 'summary']) {
      expect(press(selector, { key: 'Enter' }).defaultPrevented).toBe(false);
    }
    expect(dialog.isDisposed).toBe(false);
    dialog.reject();
    await closed;
  });

  it('leaves the keys of an input method to it', async () => {
    const { press, dialog, closed } = show();
    await dialog.ready;
    for (const key of ['Enter', 'Escape']) {
      const event = press('input', { key, isComposing: true });
      expect(event.defaultPrevented).toBe(false);
    }
    expect(dialog.isDisposed).toBe(false);
    dialog.reject();
    await closed;
  });

  it('is answered by Enter in a field, and left by Escape', async () => {
    const first = show();
    await first.dialog.ready;
    first.press('input', { key: 'Enter' });
    expect(await first.closed).toBeTruthy();
    const second = show();
    await second.dialog.ready;
    second.press('textarea', { key: 'Escape' });
    expect(await second.closed).toBeNull();
  });
});
