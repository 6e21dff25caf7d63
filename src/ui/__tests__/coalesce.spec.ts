import { Coalesced } from '../coalesce';

describe('Coalesced', () => {
  const made: Coalesced[] = [];

  /** Work that takes some time, and when it was begun, in tens of milliseconds. */
  function work(interval: number, slack = 0, takes = 0) {
    const begun: number[] = [];
    const start = Date.now();
    const coalesced = new Coalesced(
      async () => {
        begun.push(Math.round((Date.now() - start) / 10));
        await new Promise(resolve => setTimeout(resolve, takes));
      },
      interval,
      slack
    );
    made.push(coalesced);
    return { begun, coalesced };
  }

  beforeEach(() => jest.useFakeTimers());
  afterEach(() => {
    made.splice(0).forEach(each => each.dispose());
    jest.useRealTimers();
  });

  it('begins at once, and does what comes meanwhile as one', async () => {
    const { begun, coalesced } = work(100);
    coalesced.request();
    await jest.advanceTimersByTimeAsync(10);
    coalesced.request();
    coalesced.request();
    await jest.advanceTimersByTimeAsync(1000);
    expect(begun).toEqual([0, 10]);
  });

  it('never does it twice at once', async () => {
    const { begun, coalesced } = work(100, 0, 300);
    coalesced.request();
    await jest.advanceTimersByTimeAsync(10);
    coalesced.request(true);
    await jest.advanceTimersByTimeAsync(1000);
    expect(begun).toEqual([0, 30]);
  });

  it('lets a few pass after a rest, and many only at its pace', async () => {
    const { begun, coalesced } = work(100, 300);
    for (let turn = 0; turn < 100; turn += 1) {
      coalesced.request();
      await jest.advanceTimersByTimeAsync(10);
    }
    expect(begun.slice(0, 4)).toEqual([0, 1, 2, 3]);
    // Ten a second, and those that were let pass.
    expect(begun.length).toBeLessThanOrEqual(10 + 4);
  });

  it('lets what is urgent wait for nothing', async () => {
    const { begun, coalesced } = work(1000);
    coalesced.request();
    await jest.advanceTimersByTimeAsync(10);
    coalesced.request();
    await jest.advanceTimersByTimeAsync(10);
    coalesced.request(true);
    await jest.advanceTimersByTimeAsync(500);
    expect(begun).toEqual([0, 2]);
  });

  it('does nothing once it is disposed of', async () => {
    const { begun, coalesced } = work(100);
    coalesced.request();
    coalesced.dispose();
    await jest.advanceTimersByTimeAsync(1000);
    expect(begun).toEqual([]);
  });
});
