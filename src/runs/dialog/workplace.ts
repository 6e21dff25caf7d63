import { PathExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { IProblem } from '../../api';
import { isObject } from '../../ui/json';
import { translated } from '../../ui/sentences';
import type { IOutcome, ISubject } from './choice';

/** The code of what the check says of where a run works. */
export const VIEW = 'view';

/** One line: where a run works, and what becomes of the files that it makes. */
export function whereItWorks(
  subject: ISubject,
  { request, sweep }: Pick<IOutcome, 'request' | 'sweep'>,
  problems: readonly IProblem[],
  trans: TranslationBundle
): string {
  const told = problems.find(({ code }) => code === VIEW);
  if (told) {
    return translated(told.message, trans);
  }
  switch (workingFolderOf(subject, request.settings)) {
    case 'shared':
      return trans.__('Works in the folder itself, together with other runs.');
    case 'isolated':
      return trans.__(
        'Works in an empty folder of its own; only declared files are kept.'
      );
  }
  const folder = PathExt.dirname(subject.path ?? '');
  if (!folder) {
    return sweep
      ? trans.__(
          'Each run works in its own copy of the folder; the files that it makes stay with it.'
        )
      : trans.__(
          'Works in its own copy of the folder; the files that it makes are put back at the end.'
        );
  }
  const name = `${PathExt.basename(folder)}/`;
  return sweep
    ? trans.__(
        'Each run works in its own copy of “%1”; the files that it makes stay with it.',
        name
      )
    : trans.__(
        'Works in its own copy of “%1”; the files that it makes are put back at the end.',
        name
      );
}

function workingFolderOf(
  { document, content }: ISubject,
  settings: JSONObject = {}
): JSONValue | undefined {
  const { defaults } = document ?? content ?? {};
  return (
    settings.working_folder ??
    (isObject(defaults) ? defaults.working_folder : undefined)
  );
}
