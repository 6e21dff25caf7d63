import { loaded, whenNotLoaded } from '../lazy';

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

  it('that is missed for good is told, and nothing else is', () => {
    const tell = jest.fn();
    whenNotLoaded(tell);
    const fail = (request: string, name = 'ChunkLoadError') => {
      const error = Object.assign(new Error('lost'), { name, request });
      window.dispatchEvent(new ErrorEvent('error', { error }));
      const event = Object.assign(new Event('unhandledrejection'), {
        reason: error
      });
      window.dispatchEvent(event);
    };
    fail('/lab/extensions/other/static/1.js');
    fail('/lab/extensions/jupyterlab-convect/static/1.js', 'TypeError');
    expect(tell).not.toHaveBeenCalled();
    fail('/lab/extensions/jupyterlab-convect/static/1.js');
    expect(tell).toHaveBeenCalledTimes(2);
  });
});
