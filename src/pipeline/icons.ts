import { LabIcon } from '@jupyterlab/ui-components';

import fitSvg from '../../style/icons/fit.svg';
import layoutSvg from '../../style/icons/layout.svg';
import minimapSvg from '../../style/icons/minimap.svg';
import noteSvg from '../../style/icons/note.svg';
import pipelineSvg from '../../style/icons/pipeline.svg';
import propertiesSvg from '../../style/icons/properties.svg';
import snapSvg from '../../style/icons/snap.svg';
import zoomOutSvg from '../../style/icons/zoom-out.svg';

export const fitIcon = new LabIcon({ name: 'convect:fit', svgstr: fitSvg });
export const layoutIcon = new LabIcon({
  name: 'convect:layout',
  svgstr: layoutSvg
});
export const minimapIcon = new LabIcon({
  name: 'convect:minimap',
  svgstr: minimapSvg
});
export const noteIcon = new LabIcon({ name: 'convect:note', svgstr: noteSvg });
export const pipelineIcon = new LabIcon({
  name: 'convect:pipeline',
  svgstr: pipelineSvg
});
export const propertiesIcon = new LabIcon({
  name: 'convect:properties',
  svgstr: propertiesSvg
});
export const snapIcon = new LabIcon({ name: 'convect:snap', svgstr: snapSvg });
export const zoomOutIcon = new LabIcon({
  name: 'convect:zoom-out',
  svgstr: zoomOutSvg
});
