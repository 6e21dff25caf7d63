import { preferencesOf } from '../preferences';

describe('what the form begins with', () => {
  it('is what the settings say, and nothing where they say nothing', () => {
    const empty = { runtime: '', image: ' ', cpu: '', memory: '', gpu: 0 };
    expect(preferencesOf(empty)).toEqual({ runtime: '', settings: {} });
    expect(preferencesOf({})).toEqual({ runtime: '', settings: {} });
    expect(
      preferencesOf({ runtime: 'kubernetes', image: 'a:1', cpu: '2', gpu: 1 })
    ).toEqual({
      runtime: 'kubernetes',
      settings: { image: 'a:1', resources: { cpu: '2', gpu: 1 } }
    });
  });
});
