import '../../../style/runs.css';

export { PanelModel } from './model';
export { RunsView } from './view';
