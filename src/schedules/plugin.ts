import { lazyCommands } from '../lazycommands';

export const schedulesPlugins = [
  lazyCommands({
    id: 'jupyterlab-convect:schedules',
    description: 'Runs by the clock.',
    labels: trans => ({
      'convect:show-schedules': trans.__('Show Schedules'),
      'convect:schedule': trans.__('Schedule…')
    }),
    pages: { schedule: 'convect:show-schedules' },
    load: async context => {
      const { Parts } = await import('./parts');
      return new Parts(context);
    }
  })
];
