import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';

/** What the parts of the canvas ask of whoever shows it. */
export interface ICanvasContext {
  trans: TranslationBundle;
  isReadOnly: boolean;
  /** The state of a step was clicked. */
  openStep(id: string): void;
  showProblems(id: string): void;
  toggleFold(id: string): void;
  rename(id: string, name: string): void;
  setNote(id: string, text: string): void;
  resizeNote(id: string, place: number[]): void;
  /** The note that is being written, if one is. */
  editedNote: string | null;
  editNote(id: string | null): void;
  renderMarkdown(text: string, host: HTMLElement): Promise<void>;
}

const nothing = () => undefined;

export const CanvasContext = React.createContext<ICanvasContext>({
  trans: nullTranslator.load('jupyterlab_convect'),
  isReadOnly: true,
  openStep: nothing,
  showProblems: nothing,
  toggleFold: nothing,
  rename: nothing,
  setNote: nothing,
  resizeNote: nothing,
  editedNote: null,
  editNote: nothing,
  renderMarkdown: async (text, host) => {
    host.textContent = text;
  }
});

export function useCanvas(): ICanvasContext {
  return React.useContext(CanvasContext);
}
