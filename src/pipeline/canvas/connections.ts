import type { TranslationBundle } from '@jupyterlab/translation';
import type { Connection } from '@xyflow/react';

import { connect, connectFile, connectValue } from '../edits';
import type { IEdge } from '../graph';
import { isPattern } from '../graph';
import type { PipelineDoc } from '../model';
import { orderRefusal } from '../order';
import type { IDocument } from '../schema';
import { fileOf, portName } from './flow';

type Ends = Pick<
  Connection,
  'source' | 'target' | 'sourceHandle' | 'targetHandle'
>;

/** Why two ends cannot be connected, in words; null when they can. */
export function refusal(
  document: IDocument,
  edges: readonly IEdge[],
  ends: Ends,
  trans: TranslationBundle
): string | null {
  if (portName(ends.targetHandle) && !portName(ends.sourceHandle)) {
    return trans.__('Drag from one of its outputs to pass a value.');
  }
  const file = fileOf(ends.sourceHandle);
  if (file !== null && portName(ends.targetHandle) && isPattern(file)) {
    return trans.__(
      '%1 may match several files. Connect it to the node itself.',
      file
    );
  }
  return orderRefusal(document, edges, ends.source, ends.target, trans);
}

/** Connect two ends: an output or a file with a parameter, or else one node after another. */
export function makeConnection(doc: PipelineDoc, ends: Ends): void {
  const output = portName(ends.sourceHandle);
  const name = portName(ends.targetHandle);
  if (name !== null && fileOf(ends.sourceHandle) !== null) {
    connectFile(doc, ends.source, output!, ends.target, name);
  } else if (output !== null && name !== null) {
    connectValue(doc, ends.source, output, ends.target, name);
  } else {
    connect(doc, ends.source, ends.target);
  }
}
