import { LabIcon } from '@jupyterlab/ui-components';

import componentSvg from '../../style/icons/component.svg';

export const componentIcon = new LabIcon({
  name: 'convect:component',
  svgstr: componentSvg
});
