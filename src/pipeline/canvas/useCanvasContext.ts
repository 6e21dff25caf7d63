import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import type { IDisposable } from '@lumino/disposable';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { toggleFold } from '../arranging';
import type { Session } from '../session';
import { useSignal } from '../store';
import type { ICanvasContext } from './context';

export function useCanvasContext(
  session: Session,
  rendermime: IRenderMimeRegistry
): ICanvasContext {
  const [editedNote, editNote] = React.useState<string | null>(null);
  // Nothing of this changes when a note is opened or closed.
  const actions = React.useMemo(
    () => ({
      trans: session.trans,
      openStep: (id: string) => session.openStep(id),
      showProblems: (id: string) => {
        session.select([id]);
        session.state.update({ panel: 'problems' });
      },
      toggleFold: (id: string) => toggleFold(session, id),
      setNote: (id: string, text: string) => {
        if (session.document.comments?.[id]?.text !== text) {
          session.doc.edit(
            draft => draft.set(['comments', id, 'text'], text),
            `comment.${id}`
          );
        }
      },
      resizeNote: (id: string, place: number[]) =>
        session.doc.edit(draft =>
          draft.put('layout', id, place.map(Math.round))
        ),
      editNote: (id: string | null) => {
        if (id === null || !session.isReadOnly) {
          editNote(id);
        }
      },
      renderMarkdown: (text: string, host: HTMLElement) =>
        renderMarkdown(rendermime, text, host)
    }),
    [session, rendermime]
  );
  const isReadOnly = useSignal(
    session.context.model.stateChanged,
    () => session.isReadOnly
  );
  return React.useMemo(
    () => ({ ...actions, isReadOnly, editedNote }),
    [actions, isReadOnly, editedNote]
  );
}

function renderMarkdown(
  rendermime: IRenderMimeRegistry,
  text: string,
  host: HTMLElement
): IDisposable {
  const renderer = rendermime.createRenderer('text/markdown');
  // Formulas are set only in what is attached.
  Widget.attach(renderer, host);
  renderer
    .renderModel(rendermime.createModel({ data: { 'text/markdown': text } }))
    .catch(() => {
      renderer.node.textContent = text;
    });
  return renderer;
}
