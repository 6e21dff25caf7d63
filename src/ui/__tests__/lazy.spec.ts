import { loaded } from '../lazy';

describe('a part of the program', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('is asked for again when it could not be loaded', async () => {
    const load = jest
      .fn<Promise<string>, []>()
      .mockRejectedValueOnce(new Error('lost'))
      .mockRejectedValueOnce(new Error('lost'))
      .mockResolvedValue('part');
    const part = loaded(load);
    await jest.advanceTimersByTimeAsync(10000);
    await expect(part).resolves.toBe('part');
    expect(load).toHaveBeenCalledTimes(3);
  });

  it('is given up at last', async () => {
    const part = loaded(() => Promise.reject(new Error('lost')));
    const failed = expect(part).rejects.toThrow('lost');
    await jest.advanceTimersByTimeAsync(10000);
    await failed;
  });
});
