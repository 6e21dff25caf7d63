import { nullTranslator } from '@jupyterlab/translation';

import type { IMadeFile, IMadeFiles } from '../../api';
import { fatesOf, notPut, outcomeOfPutting, spared } from '../made';

const trans = nullTranslator.load('');

function file(path: string, more: Partial<IMadeFile> = {}): IMadeFile {
  return {
    path,
    change: 'created',
    size: 3,
    step: 'train',
    state: 'succeeded',
    replaced_by: null,
    attempt: 1,
    kept: true,
    file: `made/${path}`,
    ...more
  };
}

function made(files: IMadeFile[], more: Partial<IMadeFiles> = {}): IMadeFiles {
  return {
    project: '/home/p',
    files,
    total: files.length,
    to_put: files.length,
    put: [],
    kept: {},
    deleted: 0,
    ...more
  };
}

const CHANGED = 'it changed after the run was submitted';

describe('what became of a file', () => {
  it.each<[string, IMadeFile, Partial<IMadeFiles>]>([
    ['Was put into the project', file('m'), { put: ['m'] }],
    [
      `Kept with the run: ${CHANGED}`,
      file('m', { change: 'changed' }),
      { kept: { m: CHANGED } }
    ],
    ['Kept with the run', file('m'), {}],
    ['Too large to be kept', file('m', { kept: false, file: null }), {}],
    ['Kept with the run', file('m', { change: null, file: 'files/m' }), {}],
    ['Deleted in the run only', file('m', { change: 'deleted' }), {}],
    [
      'Deleted in the project',
      file('m', { change: 'deleted' }),
      { put: ['m'] }
    ],
    [
      `Not deleted in the project: ${CHANGED}`,
      file('m', { change: 'deleted' }),
      { kept: { m: CHANGED } }
    ]
  ])('is said: %s', (expected, one, more) => {
    expect(fatesOf(made([one], more), trans)(one)).toBe(expected);
  });

  it('is not that of the same file of another step', () => {
    const first = file('m', { step: 'prepare', replaced_by: 'train' });
    const second = file('m');
    const fateOf = fatesOf(made([first, second], { put: ['m'] }), trans);
    expect(fateOf(first)).toBe('Replaced by train');
    expect(fateOf(second)).toBe('Was put into the project');
    expect(fateOf(file('m', { state: 'failed' }))).toBe(
      'Kept with the run: the step did not succeed'
    );
  });
});

describe('putting files into the project', () => {
  it('says what came of it', () => {
    const files = [
      file('a'),
      file('b'),
      file('old', { change: 'deleted' }),
      file('model.pkl')
    ];
    const result = made(files, {
      put: ['a', 'b', 'old'],
      deleted: 1,
      kept: { 'model.pkl': CHANGED }
    });
    expect(outcomeOfPutting(result, trans)).toBe(
      '2 files are in the project now. 1 file was deleted in the project. ' +
        `model.pkl was not put into the project: ${CHANGED}.`
    );
    expect(outcomeOfPutting(made([]), trans)).toBe('This run made no files.');
  });

  it('can still replace what was spared, and nothing else', () => {
    const [model, gone] = [file('model.pkl'), file('gone')];
    const kept = {
      'model.pkl': CHANGED,
      gone: 'it is no longer kept with the run'
    };
    expect(spared(made([model, gone], { kept }))).toEqual([
      { path: 'model.pkl', change: 'created' }
    ]);
  });

  it('names only a few of many that stay', () => {
    const kept = Object.fromEntries(
      ['a', 'b', 'c', 'd', 'e'].map(path => [path, CHANGED])
    );
    expect(notPut(kept, trans)).toMatch(
      /^a was .* b was .* c was .* 2 more files were not put there either\.$/
    );
    expect(notPut({}, trans)).toBeNull();
  });
});
