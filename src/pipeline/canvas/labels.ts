import type { TranslationBundle } from '@jupyterlab/translation';
import type { AriaLabelConfig } from '@xyflow/react';

/** The words that the canvas library says by itself. */
export function ariaLabels(trans: TranslationBundle): Partial<AriaLabelConfig> {
  return {
    'minimap.ariaLabel': trans.__('Overview of the pipeline'),
    'handle.ariaLabel': trans.__('End of a connection')
  };
}
