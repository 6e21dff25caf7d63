import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Widget } from '@lumino/widgets';

import { beside, PageKind } from '../pagekind';

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

describe('a page that is opened beside what is looked at', () => {
  const notebook = { id: 'the notebook' } as Widget;
  const run = { id: 'the run' } as Widget;
  const shell = {
    currentWidget: notebook
  } as unknown as JupyterFrontEnd.IShell;
  const bar = (...tabs: Widget[]) =>
    `<div class="lm-DockPanel-tabBar">${tabs.map(({ id }) => `<li data-id="${id}"></li>`).join('')}</div>`;

  it('goes where another one is, although something is before that', () => {
    document.body.innerHTML = bar(notebook) + bar(run);
    expect(beside(shell, [run])).toEqual({ mode: 'tab-after', ref: run.id });
  });

  it('does not go behind what is looked at', () => {
    document.body.innerHTML = bar(notebook, run);
    expect(beside(shell, [run])).not.toMatchObject({ ref: run.id });
  });
});
