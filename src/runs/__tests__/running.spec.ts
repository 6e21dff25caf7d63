import type { JupyterFrontEnd } from '@jupyterlab/application';
import { IRunningSessionManagers } from '@jupyterlab/running';

import type { IRunStore, IRunsOpener } from '../../tokens';
import { running } from '../running';

describe('the list of what runs', () => {
  const app = {} as JupyterFrontEnd;
  const runs = { live: [], changed: {} } as unknown as IRunStore;
  const opener = {} as IRunsOpener;

  it('activates on a page without a Running panel', () => {
    expect(running.requires).not.toContain(IRunningSessionManagers);
    expect(() => running.activate(app, runs, opener, null, null)).not.toThrow();
  });

  it('is added to the panel where there is one', () => {
    const add = jest.fn();
    void running.activate(app, runs, opener, { add }, null);
    expect(add).toHaveBeenCalledTimes(1);
  });
});
