import '@xyflow/react/dist/base.css';

export { Canvas } from './Canvas';
export { SidePanel } from './SidePanel';
export { PlanCanvas } from './PlanCanvas';
