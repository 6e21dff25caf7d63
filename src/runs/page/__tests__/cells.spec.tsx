import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { act } from 'react-dom/test-utils';

import type { IConvectApi, State } from '../../../api';
import { Cells } from '../cells';
import { emptyStory, tell } from '../events';

describe('Cells', () => {
  const story = emptyStory();
  tell(story, [
    { time: 1, type: 'cell.start', cell: 1, index: 0, total: 1 },
    {
      time: 2,
      type: 'cell.error',
      index: 0,
      name: 'KeyboardInterrupt',
      value: '',
      traceback: 'Traceback'
    }
  ]);
  const api = {
    notebook: async () => ({ cells: [{ source: 'while True: pass' }] })
  } as unknown as IConvectApi;

  const shown = async (state: State) => {
    const place = document.createElement('div');
    const root = createRoot(place);
    await act(async () =>
      root.render(
        <Cells
          api={api}
          attempt={{ run: 'r', step: 's', attempt: 1 }}
          story={story}
          state={state}
          onOpen={() => undefined}
        />
      )
    );
    const html = place.innerHTML;
    act(() => root.unmount());
    return html;
  };

  it('does not show the cell that a stop has ended as one that failed', async () => {
    const stopped = await shown('cancelled');
    expect(stopped).not.toContain('Traceback');
    expect(stopped).toContain('data-state="cancelled"');
  });

  it('shows one that was interrupted otherwise', async () => {
    expect(await shown('failed')).toContain('Traceback');
  });

  it('shows their code as soon as the notebook is there', async () => {
    let isThere = false;
    const late = {
      notebook: async () => {
        if (!isThere) {
          throw new Error('There is no notebook yet.');
        }
        return api.notebook({ run: 'r', step: 's', attempt: 1 });
      }
    } as unknown as IConvectApi;
    const place = document.createElement('div');
    const root = createRoot(place);
    const draw = async (state: State) =>
      act(async () =>
        root.render(
          <Cells
            api={late}
            attempt={{ run: 'r', step: 's', attempt: 1 }}
            story={story}
            state={state}
            onOpen={() => undefined}
          />
        )
      );
    await draw('running');
    expect(place.innerHTML).not.toContain('while True');
    isThere = true;
    await draw('failed');
    expect(place.innerHTML).toContain('while True');
    act(() => root.unmount());
  });
});
