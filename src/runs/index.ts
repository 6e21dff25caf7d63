import { actions } from './actions';
import { executed } from './executed/plugin';
import { launch } from './launch';
import { notifications } from './notifications';
import { opener } from './opener';
import { panel, runStore } from './plugin';
import { running } from './running';

export const runsPlugins = [
  runStore,
  panel,
  opener,
  actions,
  launch,
  executed,
  running,
  notifications
];
