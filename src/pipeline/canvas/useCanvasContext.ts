import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import * as React from 'react';

import { toggleFold } from '../arranging';
import type { Session } from '../session';
import type { ICanvasContext } from './context';

export function useCanvasContext(
  session: Session,
  rendermime: IRenderMimeRegistry
): ICanvasContext {
  const [editedNote, editNote] = React.useState<string | null>(null);
  return React.useMemo(
    () => ({
      trans: session.trans,
      isReadOnly: session.isReadOnly,
      openStep: id => session.openStep(id),
      showProblems: id => {
        session.select([id]);
        session.state.update({ panel: 'problems' });
      },
      toggleFold: id => toggleFold(session, id),
      rename: (id, name) =>
        session.doc.edit(draft =>
          draft.set(['nodes', id, 'name'], name || undefined)
        ),
      setNote: (id, text) => {
        if (session.document.comments?.[id]?.text !== text) {
          session.doc.edit(draft => draft.set(['comments', id, 'text'], text));
        }
      },
      resizeNote: (id, place) =>
        session.doc.edit(draft =>
          draft.put('layout', id, place.map(Math.round))
        ),
      editedNote,
      editNote: id => {
        if (id === null || !session.isReadOnly) {
          editNote(id);
        }
      },
      renderMarkdown: async (text, host) => {
        // Attached and removed with the note, so nothing is left to dispose of.
        // eslint-disable-next-line jupyter/require-disposable-transfer
        const renderer = rendermime.createRenderer('text/markdown');
        await renderer.renderModel(
          rendermime.createModel({ data: { 'text/markdown': text } })
        );
        host.replaceChildren(renderer.node);
      }
    }),
    [session, rendermime, editedNote]
  );
}
