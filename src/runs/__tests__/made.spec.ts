import { nullTranslator } from '@jupyterlab/translation';

import type { IMadeFile, IMadeFiles, State } from '../../api';
import { fatesOf, filesToPut, notPut, outcomeOfPutting, spared } from '../made';

const trans = nullTranslator.load('');

function file(path: string, more: Partial<IMadeFile> = {}): IMadeFile {
  return {
    path,
    change: 'created',
    size: 3,
    step: 'train',
    attempt: 1,
    kept: true,
    file: `made/${path}`,
    ...more
  };
}

function made(files: IMadeFile[], more: Partial<IMadeFiles> = {}): IMadeFiles {
  return { project: '/home/p', files, put: [], kept: {}, ...more };
}

const steps = (states: Record<string, State>) =>
  Object.fromEntries(
    Object.entries(states).map(([id, state]) => [id, { state }])
  );

const GOOD = steps({ prepare: 'cached', train: 'succeeded' });
const CHANGED = 'it changed after the run was submitted';

describe('what became of a file', () => {
  it.each<[string, IMadeFile, Partial<IMadeFiles>]>([
    ['Put into the project', file('m'), { put: ['m'] }],
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
    expect(fatesOf(made([one], more), GOOD, trans)(one)).toBe(expected);
  });

  it('is not that of the same file of another step', () => {
    const [first, second] = [file('m', { step: 'prepare' }), file('m')];
    const both = made([first, second], { put: ['m'] });
    expect(fatesOf(both, GOOD, trans)(first)).toBe('Replaced by train');
    expect(fatesOf(both, GOOD, trans)(second)).toBe('Put into the project');
    const failed = steps({ prepare: 'succeeded', train: 'failed' });
    expect(fatesOf(both, failed, trans)(first)).toBe('Put into the project');
    expect(fatesOf(both, failed, trans)(second)).toBe(
      'Kept with the run: the step did not succeed'
    );
  });
});

describe('putting files into the project', () => {
  it('is about each path as the last good step left it', () => {
    const [first, second] = [file('m', { step: 'prepare' }), file('m')];
    const gone = file('old', { change: 'deleted', kept: false, file: null });
    const large = file('large', { kept: false, file: null });
    const declared = file('same', { change: null });
    const all = made([first, second, gone, large, declared]);
    expect(filesToPut(all, GOOD)).toEqual([second, gone]);
    const failed = steps({ prepare: 'succeeded', train: 'failed' });
    expect(filesToPut(all, failed)).toEqual([first]);
  });

  it('says what came of it', () => {
    const files = [
      file('a'),
      file('b'),
      file('old', { change: 'deleted' }),
      file('model.pkl')
    ];
    const result = made(files, {
      put: ['a', 'b', 'old'],
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
      gone: 'it is not kept with the run any more'
    };
    expect(spared(made([model, gone], { kept }))).toEqual([model]);
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
