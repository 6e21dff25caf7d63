import type { TranslationBundle } from '@jupyterlab/translation';

import type { IMadeFile, IMadeFiles, State } from '../api';
import { translated } from '../ui/sentences';

/** What a run did to a file. */
export type IFileChange = Pick<IMadeFile, 'path' | 'change'>;

/** The most names in one sentence. */
const MOST_NAMES = 3;

/** Tells what became of each file of a run; of thousands, too. */
export function fatesOf(
  made: IMadeFiles,
  trans: TranslationBundle
): (file: IMadeFile) => string {
  const put = new Set(made.put);
  return ({ path, change, kept, state, replaced_by: by }) => {
    if (change === null) {
      return kept ? trans.__('Kept with the run') : notKept(trans);
    }
    if (!isGood(state)) {
      return trans.__('Kept with the run: the step did not succeed');
    }
    if (by !== null) {
      return trans.__('Replaced by %1', by);
    }
    const isDeleted = change === 'deleted';
    if (put.has(path)) {
      return isDeleted
        ? trans.__('Deleted in the project')
        : trans.__('Was put into the project');
    }
    const reason = made.kept[path] && translated(made.kept[path], trans);
    if (isDeleted) {
      return reason
        ? trans.__('Not deleted in the project: %1', reason)
        : trans.__('Deleted in the run only');
    }
    if (!kept) {
      return notKept(trans);
    }
    return reason
      ? trans.__('Kept with the run: %1', reason)
      : trans.__('Kept with the run');
  };
}

function notKept(trans: TranslationBundle): string {
  return trans.__('Too large to be kept');
}

/** What came of putting them there, in a sentence or two. */
export function outcomeOfPutting(
  made: IMadeFiles,
  trans: TranslationBundle
): string {
  const gone = made.deleted;
  const there = made.put.length - gone;
  const kept = Object.entries(made.kept);
  const sentences = [
    there > 0 &&
      trans._n(
        '%1 file is in the project now.',
        '%1 files are in the project now.',
        there
      ),
    gone > 0 &&
      trans._n(
        '%1 file was deleted in the project.',
        '%1 files were deleted in the project.',
        gone
      ),
    ...keptSentences(kept, trans)
  ].filter(sentence => sentence !== false);
  return sentences.join(' ') || trans.__('This run made no files.');
}

/** Which files of a run are not in the project, and why; null when there are none. */
export function notPut(
  kept: Readonly<Record<string, string>>,
  trans: TranslationBundle
): string | null {
  return keptSentences(Object.entries(kept), trans).join(' ') || null;
}

/** The files that were not put over what somebody has changed, made or deleted since. */
export function spared(made: IMadeFiles): IFileChange[] {
  const changes = new Map(made.files.map(({ path, change }) => [path, change]));
  return Object.entries(made.kept)
    .filter(([, why]) => why.endsWith('after the run was submitted'))
    .map(([path]) => ({ path, change: changes.get(path) ?? 'changed' }));
}

function keptSentences(
  kept: readonly [string, string][],
  trans: TranslationBundle
): string[] {
  const named = kept
    .slice(0, MOST_NAMES)
    .map(([path, why]) =>
      trans.__(
        '%1 was not put into the project: %2.',
        path,
        translated(why, trans)
      )
    );
  const more = kept.length - named.length;
  return more > 0
    ? [
        ...named,
        trans._n(
          '%1 more file was not put there either.',
          '%1 more files were not put there either.',
          more
        )
      ]
    : named;
}

function isGood(state: State): boolean {
  return state === 'succeeded' || state === 'cached';
}
