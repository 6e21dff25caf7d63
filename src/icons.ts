import { LabIcon } from '@jupyterlab/ui-components';

import convectSvg from '../style/icons/convect.svg';

export const convectIcon = new LabIcon({
  name: 'convect:logo',
  svgstr: convectSvg
});
