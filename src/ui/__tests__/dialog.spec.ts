import { Dialog } from '@jupyterlab/apputils';
import { Widget } from '@lumino/widgets';

import { FormDialog } from '../dialog';

/** A dialog with two fields, whose node is in the document. */
function dialogOf(): FormDialog<void> {
  const body = new Widget();
  body.node.innerHTML = '<input id="first"><input id="second">';
  return new FormDialog({ body, buttons: [Dialog.okButton()] });
}

describe('a dialog around a form', () => {
  it('gives the keyboard to its first field', async () => {
    const dialog = dialogOf();
    const answer = dialog.launch();
    await dialog.ready;
    expect(document.activeElement?.id).toBe('first');
    dialog.reject();
    await answer;
  });

  it('leaves the keyboard where somebody types already', async () => {
    const dialog = dialogOf();
    const answer = dialog.launch();
    await dialog.ready;
    document.getElementById('second')?.focus();
    // What JupyterLab does when all is drawn may come after a click.
    Reflect.get(dialog, 'onAfterAttach').call(dialog, {});
    expect(document.activeElement?.id).toBe('second');
    dialog.reject();
    await answer;
  });
});
