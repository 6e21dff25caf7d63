import { nullTranslator } from '@jupyterlab/translation';

import type { IProblem, IRequest } from '../../../api';
import { choiceOf, EMPTY_CHOICE, outcomeOf } from '../choice';
import { whereItWorks } from '../workplace';

const trans = nullTranslator.load('');

function line(
  path: string,
  request: IRequest = {},
  options: { sweep?: boolean; problems?: IProblem[] } = {}
): string {
  const space = { lr: [1, 2] };
  const sweep = options.sweep
    ? { request, space, mode: 'grid' as const }
    : null;
  return whereItWorks(
    { path, document: null, title: path },
    { request, sweep },
    options.problems ?? [],
    trans
  );
}

describe('where a run works', () => {
  it('is a copy of its own, from which a single run puts its files back', () => {
    expect(line('work/churn/train.ipynb')).toBe(
      'Works in its own copy of “churn/”; the files that it makes are put back at the end.'
    );
    expect(line('train.ipynb')).toContain('its own copy of the folder');
  });

  it('is another copy for each run of a sweep', () => {
    expect(line('churn/train.ipynb', {}, { sweep: true })).toBe(
      'Each run works in its own copy of “churn/”; the files that it makes stay with it.'
    );
  });

  it('is the folder itself when that was chosen, also again', () => {
    const choice = { ...EMPTY_CHOICE, settings: { working_folder: 'shared' } };
    const subject = { path: 'a/b.py', document: null, title: 'b.py' };
    const { request } = outcomeOf(subject, choice, [], trans);
    expect(request.settings).toEqual({ working_folder: 'shared' });
    expect(choiceOf(request).settings).toEqual({ working_folder: 'shared' });
    expect(line('a/b.py', request)).toBe(
      'Works in the folder itself, together with other runs.'
    );
  });

  it('is what the server says, when it does', () => {
    const message = 'Runs in “churn/” take turns.';
    const problem = { severity: 'info', code: 'view', message } as const;
    expect(line('churn/a.ipynb', {}, { problems: [problem] })).toBe(message);
  });
});
