import { apiPlugins } from './api/plugin';
import { runsPlugins } from './runs';

export default [...apiPlugins, ...runsPlugins];
