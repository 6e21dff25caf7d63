import type { LabIcon } from '@jupyterlab/ui-components';
import {
  folderIcon,
  notebookIcon,
  pythonIcon,
  rKernelIcon,
  terminalIcon
} from '@jupyterlab/ui-components';

import { componentIcon } from '../catalog/icons';
import { pipelineIcon } from './icons';
import type { INodeView } from './views';

export function iconOf(view: Pick<INodeView, 'kind' | 'subtitle'>): LabIcon {
  switch (view.kind) {
    case 'notebook':
      return notebookIcon;
    case 'component':
      return componentIcon;
    case 'group':
      return folderIcon;
    case 'pipeline':
      return pipelineIcon;
    case 'command':
      return terminalIcon;
    case 'script':
      return /\.r$/i.test(view.subtitle)
        ? rKernelIcon
        : /\.py$/i.test(view.subtitle)
          ? pythonIcon
          : terminalIcon;
  }
}
