import { nullTranslator } from '@jupyterlab/translation';

import type { Ending } from '../endings';
import { detail, message } from '../telling';

const trans = nullTranslator.load('jupyterlab_convect');

const ending: Ending = {
  kind: 'run',
  id: '1',
  name: 'churn',
  state: 'failed',
  step: 'train',
  reason: 'Cell 3 raised ValueError: bad value',
  lines: ['epoch 1', 'epoch 2'],
  failed: 1,
  total: 1
};

describe('what is told of an end', () => {
  it('names the step, the reason and the last lines', () => {
    expect(message(ending, trans)).toBe(
      'churn failed in “train”. Cell 3 raised ValueError: bad value\nepoch 1\nepoch 2'
    );
  });

  it('is never longer than JupyterLab shows, and keeps the last line', () => {
    const long = {
      ...ending,
      reason: 'r'.repeat(500),
      lines: ['a'.repeat(300), 'the last line']
    };
    const text = message(long, trans);
    expect(text.length).toBeLessThanOrEqual(140);
    expect(text).toMatch(/^churn failed in “train”\. r+…\n/);
    expect(text.endsWith('the last line')).toBe(true);
    expect(detail(long, trans)).toContain('r'.repeat(500));
  });

  it('says how many runs of a sweep failed', () => {
    const sweep: Ending = {
      ...ending,
      kind: 'sweep',
      step: null,
      reason: null,
      lines: [],
      failed: 3,
      total: 9
    };
    expect(message(sweep, trans)).toBe('churn: 3 of 9 runs failed.');
  });

  it('is short when all went well', () => {
    const well: Ending = {
      ...ending,
      state: 'succeeded',
      step: null,
      reason: null,
      lines: []
    };
    expect(message(well, trans)).toBe('churn has finished.');
    expect(message({ ...well, state: 'cancelled' }, trans)).toBe(
      'churn was stopped.'
    );
  });
});
