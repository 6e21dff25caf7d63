import { nullTranslator } from '@jupyterlab/translation';

import { stepOf } from '../../../api';
import { timeLeft } from '../steps';

const trans = nullTranslator.load('jupyterlab_convect');

describe('timeLeft', () => {
  const progress = { cell: 1, cells: 4, elapsed: 1, expected: 60 };
  const running = stepOf({ id: 's', state: 'running', started: 100, progress });

  it('is what the last time took, less what has passed', () => {
    expect(timeLeft(running, 115, trans)).toBe('about 45 s left');
    expect(timeLeft(running, 170, trans)).toBe('took 1 min 00 s the last time');
  });

  it('is not told of what never ran, or does not run', () => {
    const unknown = { ...running, progress: { ...progress, expected: null } };
    expect(timeLeft(unknown, 115, trans)).toBeNull();
    expect(timeLeft({ ...running, state: 'queued' }, 115, trans)).toBeNull();
  });
});
