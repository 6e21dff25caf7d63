import { LabIcon } from '@jupyterlab/ui-components';

import convectSvg from '../style/icons/convect.svg';
import curvesSvg from '../style/icons/curves.svg';
import pinSvg from '../style/icons/pin.svg';

export const convectIcon = new LabIcon({
  name: 'convect:logo',
  svgstr: convectSvg
});

export const pinIcon = new LabIcon({ name: 'convect:pin', svgstr: pinSvg });

export const curvesIcon = new LabIcon({
  name: 'convect:curves',
  svgstr: curvesSvg
});
