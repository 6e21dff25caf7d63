import type { TranslationBundle } from '@jupyterlab/translation';

import { translated } from '../ui/sentences';
import { isBad } from '../ui/states';
import type { Ending } from './endings';

/** JupyterLab cuts off what is longer. */
const LONGEST = 140;
/** What a reason may take of it, so that the last lines have a place, too. */
const LONGEST_REASON = 60;

/** What happened, in a sentence. */
export function headline(ending: Ending, trans: TranslationBundle): string {
  const { kind, state, name, step, failed, total } = ending;
  if (kind === 'sweep' && failed > 0) {
    return trans._n(
      '%3: %2 of %1 run failed.',
      '%3: %2 of %1 runs failed.',
      total,
      failed,
      name
    );
  }
  if (isBad(state)) {
    return step
      ? trans.__('%1 failed in “%2”.', name, step)
      : trans.__('%1 failed.', name);
  }
  return state === 'cancelled'
    ? trans.__('%1 was stopped.', name)
    : trans.__('%1 has finished.', name);
}

/** Why, and what was printed last. */
export function detail(
  { reason, lines }: Ending,
  trans: TranslationBundle
): string {
  return [wordsOf(reason, trans), ...lines].filter(line => line).join('\n');
}

/** Both, no longer than JupyterLab shows. */
export function message(ending: Ending, trans: TranslationBundle): string {
  const { reason, lines } = ending;
  const room = lines.length > 0 ? LONGEST_REASON : LONGEST;
  const why = cut(wordsOf(reason, trans), room);
  const head = [headline(ending, trans), why].join(' ');
  const kept: string[] = [];
  let left = LONGEST - head.trim().length;
  for (const line of [...lines].reverse()) {
    if (left < 12) {
      break;
    }
    const shown = cut(line, left - 1);
    kept.unshift(shown);
    left -= shown.length + 1;
  }
  return cut([head.trim(), ...kept].join('\n'), LONGEST);
}

function wordsOf(reason: string | null, trans: TranslationBundle): string {
  return reason ? translated(reason, trans) : '';
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
