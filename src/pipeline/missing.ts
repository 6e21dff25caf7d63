import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';

import { emptyDocument } from './create';
import { pickFiles } from './form/pick';
import { kindOf, SUFFIX } from './ids';
import { dumps } from './serialize';
import type { Session } from './session';

/** A new notebook, empty but for a cell that says what it takes. */
const NOTEBOOK = {
  cells: [
    {
      id: 'parameters',
      cell_type: 'code',
      execution_count: null,
      metadata: { tags: ['parameters'] },
      outputs: [],
      source: ''
    }
  ],
  metadata: {},
  nbformat: 4,
  nbformat_minor: 5
};

/** Find the file of a node elsewhere, or make it. */
export async function mendMissingFile(
  session: Session,
  id: string
): Promise<void> {
  const { trans } = session;
  const node = session.document.nodes[id];
  if (!node || !('path' in node)) {
    return;
  }
  const path = session.resolve(node.path);
  const find = Dialog.okButton({ label: trans.__('Find it…') });
  const make = Dialog.createButton({ label: trans.__('Make a new one') });
  const result = await showDialog({
    title: trans.__('There is no file %1', node.path),
    body: trans.__('It may have been moved or renamed, or not created yet.'),
    buttons:
      path === null || session.isReadOnly
        ? [Dialog.cancelButton(), find]
        : [Dialog.cancelButton(), make, find]
  });
  if (result.button.label === find.label) {
    const [found] = await pickFiles(session, { runnable: true });
    if (found) {
      session.doc.edit(draft => draft.set(['nodes', id, 'path'], found));
    }
  } else if (result.button.label === make.label && path !== null) {
    try {
      await makeFile(session, path);
    } catch (error) {
      void showErrorMessage(trans.__('It could not be made'), error as Error);
    }
  }
}

async function makeFile(session: Session, path: string): Promise<void> {
  const isNotebook = kindOf(path) === 'notebook';
  const content =
    kindOf(path) === 'pipeline'
      ? dumps(emptyDocument(PathExt.basename(path, SUFFIX)))
      : '';
  await session.contents.save(
    path,
    isNotebook
      ? { type: 'notebook', format: 'json', content: NOTEBOOK }
      : { type: 'file', format: 'text', content }
  );
  session.docManager.openOrReveal(path);
}
