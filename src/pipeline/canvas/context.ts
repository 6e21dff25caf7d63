import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';
import { DisposableDelegate } from '@lumino/disposable';
import * as React from 'react';

/** What the parts of the canvas ask of whoever shows it. */
export interface ICanvasContext {
  trans: TranslationBundle;
  isReadOnly: boolean;
  /** The state of a step was clicked. */
  openStep(id: string): void;
  showProblems(id: string): void;
  toggleFold(id: string): void;
  setNote(id: string, text: string): void;
  resizeNote(id: string, place: number[]): void;
  /** The note that is being written, if one is. */
  editedNote: string | null;
  editNote(id: string | null): void;
  /** Draw a text into an element that is on the page, until it is disposed of. */
  renderMarkdown(text: string, host: HTMLElement): IDisposable;
}

const nothing = () => undefined;

export const CanvasContext = React.createContext<ICanvasContext>({
  trans: nullTranslator.load('jupyterlab_convect'),
  isReadOnly: true,
  openStep: nothing,
  showProblems: nothing,
  toggleFold: nothing,
  setNote: nothing,
  resizeNote: nothing,
  editedNote: null,
  editNote: nothing,
  renderMarkdown: (text, host) => {
    host.textContent = text;
    return new DisposableDelegate(() => host.replaceChildren());
  }
});

export function useCanvas(): ICanvasContext {
  return React.useContext(CanvasContext);
}
