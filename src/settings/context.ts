import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IOffering, IProblem } from '../api';
import type { ISettingProps } from './Row';

/** How a person chooses files. */
export interface IPickOptions {
  several?: boolean;
  folder?: boolean;
  runnable?: boolean;
}

/** What every field of one form shares. */
export interface IFormContext {
  trans: TranslationBundle;
  isReadOnly: boolean;
  /** Set a property; `undefined` removes it. */
  set(path: readonly string[], value: JSONValue | undefined): void;
  problems: readonly IProblem[];
  /** Problems are listed elsewhere; fields only show that they have some. */
  marksOnly?: boolean;
  /** Several objects are shown, and they differ here. */
  isMixed(path: readonly string[]): boolean;
  /** Which parts of the form are open, once somebody has said so. */
  openSections: Map<string, boolean>;
  /** Parts start folded, unless something is set in them. */
  isFolded?: boolean;
  /** To choose from. */
  images: readonly string[];
  /** What an administrator offers, once that is known. */
  offering?: IOffering | null;
  kernels: readonly string[];
  gpuTypes?: readonly string[];
  /** Names of environment variables that the file reads. */
  env?: readonly string[];
  /** Whether a field inside another one is shown; all are unless said. */
  isShown?(path: readonly string[]): boolean;
  /** What is said of a field, by its path: what is free of it, for example. */
  hint?(path: readonly string[]): string | null;
  /** Let a person choose files; paths as the document writes them. */
  pick?(options: IPickOptions): Promise<string[]>;
  /** Open the file that this is about. */
  open?(): void;
  /** Fields that only some forms have, by the widget that the schema names. */
  widgets?: { readonly [widget: string]: React.ComponentType<ISettingProps> };
}

export const FormContext = React.createContext<IFormContext | null>(null);

export function useForm(): IFormContext {
  return React.useContext(FormContext)!;
}

/** Words that come from a schema, in the user's language. */
export function words(trans: TranslationBundle, text: string): string {
  // The catalogue of translations takes them from the schema.
  // eslint-disable-next-line jupyter/no-dynamic-translation
  return trans.__(text);
}

/** The problems of one field, however deep in it they are. */
export function problemsAt(
  problems: readonly IProblem[],
  path: readonly string[]
): IProblem[] {
  return problems.filter(problem => {
    const place = problem.path ?? [];
    return (
      place.length >= path.length &&
      path.every((key, index) => String(place[index]) === key)
    );
  });
}
