import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

import { PageKind } from '../pagekind';

describe('PageKind', () => {
  it('opens another tab of the browser where the shell has no place for a page', async () => {
    const opened = jest.spyOn(window, 'open').mockReturnValue(null);
    const shell = {
      add: () => undefined,
      activateById: () => undefined
    } as unknown as JupyterFrontEnd.IShell;
    const made: Widget[] = [];
    const pages = new PageKind(
      shell,
      'run',
      async () => {
        made.push(new Widget());
        return made[made.length - 1];
      },
      id => `/lab?convect-run=${id}`
    );
    expect(await pages.open('r')).toBeNull();
    expect(opened).toHaveBeenCalledWith('/lab?convect-run=r');
    expect(made[0].isDisposed).toBe(true);
    // It is not taken for open the next time.
    expect(await pages.open('r')).toBeNull();
    expect(opened).toHaveBeenCalledTimes(2);
    opened.mockRestore();
  });
});
