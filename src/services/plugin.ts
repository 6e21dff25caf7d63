import { CommandIDs } from '../commands';
import { lazyCommands } from '../lazycommands';

export const servicesPlugins = [
  lazyCommands({
    id: 'jupyterlab-convect:services',
    description: 'What can be called, and what stays up.',
    labels: trans => ({
      'convect:show-endpoints': trans.__('Show Services'),
      'convect:make-callable': trans.__('Make Callable…'),
      'convect:show-dask': trans.__('Show Dask Clusters'),
      [CommandIDs.openTensorBoard]: trans.__('Open in TensorBoard')
    }),
    pages: {
      endpoints: 'convect:show-endpoints',
      service: 'convect:show-endpoints',
      dask: 'convect:show-dask',
      daskplot: 'convect:show-dask'
    },
    load: async context => {
      const { Parts } = await import('./parts');
      return new Parts(context);
    }
  })
];
