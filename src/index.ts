import { apiPlugins } from './api/plugin';
import { catalogPlugins } from './catalog/plugin';
import { pipelinePlugins } from './pipeline/plugin';
import { runsPlugins } from './runs';

export default [
  ...apiPlugins,
  ...runsPlugins,
  ...pipelinePlugins,
  ...catalogPlugins
];
