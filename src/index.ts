import { apiPlugins } from './api/plugin';
import { catalogPlugins } from './catalog/plugin';
import { clusterPlugins } from './cluster/plugin';
import { pipelinePlugins } from './pipeline/plugin';
import { runsPlugins } from './runs';
import { schedulesPlugins } from './schedules/plugin';
import { servicesPlugins } from './services/plugin';
import { trainingPlugins } from './training/plugin';

export * from './tokens';
export type * from './api/types';

export default [
  ...apiPlugins,
  ...runsPlugins,
  ...pipelinePlugins,
  ...catalogPlugins,
  ...servicesPlugins,
  ...schedulesPlugins,
  ...trainingPlugins,
  ...clusterPlugins
];
