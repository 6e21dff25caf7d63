import type { TranslationBundle } from '@jupyterlab/translation';
import type { AriaLabelConfig } from '@xyflow/react';

/** The words that the canvas library says by itself. */
export function ariaLabels(trans: TranslationBundle): Partial<AriaLabelConfig> {
  return {
    'node.a11yDescription.default': trans.__(
      'Press Enter for the properties, Space to select, the arrow keys to move it, C to connect it, Delete to remove it.'
    ),
    'node.a11yDescription.keyboardDisabled': trans.__(
      'Press Enter for the details.'
    ),
    'node.a11yDescription.ariaLiveMessage': ({ x, y }) =>
      trans.__('Moved to %1, %2.', Math.round(x), Math.round(y)),
    'edge.a11yDescription.default': trans.__(
      'Press Delete to remove the connection.'
    ),
    'minimap.ariaLabel': trans.__('Overview of the pipeline'),
    'handle.ariaLabel': trans.__('End of a connection')
  };
}
