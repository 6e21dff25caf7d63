import { LabIcon } from '@jupyterlab/ui-components';

import compareSvg from '../style/icons/compare.svg';
import convectSvg from '../style/icons/convect.svg';
import curvesSvg from '../style/icons/curves.svg';
import pinSvg from '../style/icons/pin.svg';
import sweepSvg from '../style/icons/sweep.svg';

export const convectIcon = new LabIcon({
  name: 'convect:logo',
  svgstr: convectSvg
});

export const compareIcon = new LabIcon({
  name: 'convect:compare',
  svgstr: compareSvg
});

export const sweepIcon = new LabIcon({
  name: 'convect:sweep',
  svgstr: sweepSvg
});

export const pinIcon = new LabIcon({ name: 'convect:pin', svgstr: pinSvg });

export const curvesIcon = new LabIcon({
  name: 'convect:curves',
  svgstr: curvesSvg
});
