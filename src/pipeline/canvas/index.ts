import '@xyflow/react/dist/base.css';

import '../../../style/pipeline.css';

export { Canvas } from './Canvas';
export { SidePanel } from '../side/SidePanel';
export { PlanCanvas } from './PlanCanvas';
export { unfold } from '../unfold';
