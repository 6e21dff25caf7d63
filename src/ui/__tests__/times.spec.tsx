import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { noteServerDate } from '../../api';
import { Ago, Duration } from '../times';

const START = 1_800_000_000;

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

function render(element: JSX.Element): HTMLElement {
  const place = document.createElement('div');
  const root = createRoot(place);
  act(() => root.render(element));
  unmount = () => act(() => root.unmount());
  return place;
}

let unmount: () => void;

describe('times on one screen', () => {
  beforeEach(() => {
    jest.useFakeTimers({ now: START * 1000 });
    noteServerDate(new Date(START * 1000).toUTCString());
  });

  afterEach(() => {
    unmount();
    jest.useRealTimers();
  });

  const pass = (seconds: number) =>
    act(() => {
      jest.advanceTimersByTime(seconds * 1000);
    });

  it('go on together, second by second', () => {
    const place = render(
      <>
        <Ago time={START - 20} />
        <Duration started={START - 20} live />
      </>
    );
    expect(place.textContent).toBe('20 seconds ago20 s');
    pass(7);
    expect(place.textContent).toBe('27 seconds ago27 s');
  });

  it('follow the clock of the server when that of the browser is wrong', () => {
    noteServerDate(new Date((START + 3600) * 1000).toUTCString());
    const place = render(
      <>
        <Ago time={START + 3590} />
        <Duration started={START + 3590} live />
      </>
    );
    pass(5);
    expect(place.textContent).toBe('15 seconds ago15 s');
  });

  it('stand still once something has ended', () => {
    const place = render(
      <Duration started={START - 30} ended={START - 10} live={false} />
    );
    pass(60);
    expect(place.textContent).toBe('20 s');
  });
});
