import * as React from 'react';

import type { IProblem } from '../../api';
import type { Json } from '../schema';
import type { Session } from '../session';

/** What every field of one form shares. */
export interface IFormContext {
  session: Session;
  /** The node whose properties these are; null for the pipeline's own. */
  node: string | null;
  isReadOnly: boolean;
  /** Set a property of it; `undefined` removes it. */
  set(path: readonly string[], value: Json | undefined): void;
  problems: readonly IProblem[];
  /** Several nodes are shown, and they differ here. */
  isMixed(path: readonly string[]): boolean;
}

export const FormContext = React.createContext<IFormContext | null>(null);

export function useForm(): IFormContext {
  return React.useContext(FormContext)!;
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
