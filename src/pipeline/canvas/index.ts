import '@xyflow/react/dist/base.css';

import '../../../style/pipeline.css';

export * as actions from '../actions';
export * as arranging from '../arranging';
export * as copying from '../copying';
export * as keyboard from '../keyboard';
export { SidePanel } from '../side/SidePanel';
export { unfold } from '../unfold';
export { Canvas } from './Canvas';
export { CanvasHost } from './CanvasHost';
export { PlanCanvas } from './PlanCanvas';
