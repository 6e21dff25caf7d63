import { nullTranslator } from '@jupyterlab/translation';

import { linesOf } from '../difference';
import { complaintsOf, NO_VALUES, settingsOf, valuesOf } from '../settings';

const trans = nullTranslator.load('jupyterlab_convect');

describe('the form of a catalog', () => {
  const values = {
    ...NO_VALUES,
    name: ' Mine ',
    urls: 'https://a.example/x.yaml\n\n  https://b.example/y.yaml ',
    categories: 'Data, Models，数据, Data'
  };

  it('becomes a configuration', () => {
    expect(settingsOf('url', values)).toEqual({
      name: 'Mine',
      kind: 'url',
      urls: ['https://a.example/x.yaml', 'https://b.example/y.yaml'],
      categories: ['Data', 'Models', '数据'],
      auth: null,
      replacements: {},
      refresh: null
    });
    expect(settingsOf('folder', { ...values, path: ' parts ' })).toEqual({
      name: 'Mine',
      kind: 'folder',
      path: 'parts',
      categories: ['Data', 'Models', '数据']
    });
  });

  it('says how often to look for changes, and what a third party wants', () => {
    const theirs = { ...values, refresh: '3600', options: { word: 'hi' } };
    expect(settingsOf('url', theirs).refresh).toBe(3600);
    expect(settingsOf('registry', theirs)).toEqual({
      name: 'Mine',
      kind: 'registry',
      categories: ['Data', 'Models', '数据'],
      options: { word: 'hi' },
      refresh: 3600
    });
    expect(valuesOf(settingsOf('registry', theirs))).toMatchObject({
      refresh: '3600',
      options: { word: 'hi' }
    });
    expect(complaintsOf('registry', theirs, trans)).toEqual({});
  });

  it('names secrets and never holds them', () => {
    const secret = {
      ...values,
      auth: 'keyring',
      secret: 's',
      key: 'k'
    } as const;
    expect(settingsOf('url', secret).auth).toEqual({
      name: 's',
      key: 'k',
      scheme: 'Bearer'
    });
    expect(
      settingsOf('url', { ...values, auth: 'env', env: 'TOKEN' }).auth
    ).toEqual({ env: 'TOKEN', scheme: 'Bearer' });
  });

  it('replaces dead addresses', () => {
    const replacements =
      'https://dead.example/a?v=1 = https://live.example/a?v=2\n';
    const settings = settingsOf('url', { ...values, replacements });
    expect(settings.replacements).toEqual({
      'https://dead.example/a?v=1': 'https://live.example/a?v=2'
    });
    expect(
      complaintsOf('url', { ...values, replacements: 'https://a' }, trans)
    ).toHaveProperty('replacements');
    expect(settingsOf('url', valuesOf(settings))).toEqual(settings);
  });

  it('comes back from a configuration as it was', () => {
    const settings = settingsOf('url', {
      ...values,
      auth: 'env',
      env: 'TOKEN'
    });
    expect(settingsOf('url', valuesOf(settings))).toEqual(settings);
  });

  it('says what has to be mended', () => {
    expect(complaintsOf('url', values, trans)).toEqual({});
    expect(Object.keys(complaintsOf('url', NO_VALUES, trans))).toEqual([
      'name',
      'urls'
    ]);
    expect(Object.keys(complaintsOf('folder', NO_VALUES, trans))).toEqual([
      'name',
      'path'
    ]);
    for (const urls of [
      'file:///etc/passwd',
      'example.org/x.yaml',
      'http://'
    ]) {
      const wrong = complaintsOf('url', { ...values, urls }, trans);
      expect(wrong.urls).toContain(urls);
    }
    const bare = complaintsOf('url', { ...values, auth: 'keyring' }, trans);
    expect(Object.keys(bare)).toEqual(['secret', 'key']);
  });
});

test('a difference is shown line by line, without its heading', () => {
  const diff = '--- old\n+++ new\n@@ -1,2 +1,2 @@\n same\n-before\n+after\n';
  expect(linesOf(diff)).toEqual([
    { kind: 'place', text: '@@ -1,2 +1,2 @@' },
    { kind: 'same', text: 'same' },
    { kind: 'removed', text: 'before' },
    { kind: 'added', text: 'after' }
  ]);
});
