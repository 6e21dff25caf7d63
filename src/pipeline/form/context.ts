import * as React from 'react';

import type { IFormContext } from '../../settings';
import { FormContext } from '../../settings';
import type { Session } from '../session';

/** The form of a node, or of the pipeline itself. */
export interface INodeForm extends IFormContext {
  session: Session;
  /** The node whose properties these are; null for the pipeline's own. */
  node: string | null;
}

export function useForm(): INodeForm {
  return React.useContext(FormContext) as INodeForm;
}
