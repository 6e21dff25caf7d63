import { DocumentWidget } from '@jupyterlab/docregistry';

import type { PipelineModel } from './documentmodel';
import type { PipelineEditor } from './editor';

/** A pipeline's tab. */
export class PipelineWidget extends DocumentWidget<
  PipelineEditor,
  PipelineModel
> {}
