import type { TranslationBundle } from '@jupyterlab/translation';

import type { IRunSummary } from '../api';
import { translateSentences } from '../api';
import type * as table from './sentences.json';

/**
 * A pattern of what may stand in the places; of each group, which place it is, and
 * whether there is a sentence or a fragment of one in it.
 */
interface IPattern {
  sentence: string;
  pattern: RegExp;
  places: { number: number; isWords: boolean }[];
}

/** They join what is translated, and nothing else. */
const LISTS = ['%1, %2', '%1 and %2', '%1 or %2'];

/** None on a page in English. */
let sentences: IPattern[] = [];
let withFragments: IPattern[] = [];

/** What was asked for lately: lists show the same sentences with every change. */
const recent = new Map<string, string>();
const MOST_RECENT = 1000;

/**
 * Show what the server says in the language of the page from now on.
 *
 * `sentences.json` has what it says, with places for what differs, and the words of the
 * components that it has. In the places
 * of `containers`, unless in quotes, are other sentences or `fragments`, which are
 * found nowhere else: the words of programs and people are left alone.
 */
export function learn(known: typeof table, bundle: TranslationBundle): void {
  sentences = [
    ...[...known.sentences, ...known.components].map(sentence =>
      patternOf(sentence, false)
    ),
    ...known.containers.map(sentence => patternOf(sentence, true))
  ].sort(byWeight);
  withFragments = [
    ...sentences,
    ...known.fragments.map(fragment => patternOf(fragment, true))
  ].sort(byWeight);
  recent.clear();
  translateSentences(sentence => translated(sentence, bundle));
}

/**
 * What the server says, in the language of the page. What is not known stays as
 * it is, and so do names and the words of programs within a sentence.
 */
export function translated(text: string, bundle: TranslationBundle): string {
  let own = recent.get(text);
  if (own === undefined) {
    own = translatedBy(sentences, text, bundle) ?? text;
    if (recent.size >= MOST_RECENT) {
      recent.clear();
    }
    recent.set(text, own);
  }
  return own;
}

function translatedBy(
  patterns: readonly IPattern[],
  text: string,
  bundle: TranslationBundle
): string | null {
  for (const { sentence, pattern, places } of patterns) {
    const found = pattern.exec(text);
    if (found) {
      const parts: string[] = [];
      let areKnown = true;
      places.forEach(({ number, isWords }, index) => {
        const part = found[index + 1];
        const own = isWords ? translatedBy(withFragments, part, bundle) : null;
        areKnown &&= own !== null || /^“[^”]*”$/.test(part);
        parts[number - 1] = own ?? part;
      });
      // What merely has a comma in it is not a list.
      if (areKnown || !LISTS.includes(sentence)) {
        return bundle.__(sentence, ...parts);
      }
    }
  }
  return null;
}

/**
 * Why a run is as it is; that of a single step without its name, which is the run's,
 * and of what was stopped only more than that.
 */
export function reasonOf(
  run: Pick<IRunSummary, 'reason' | 'steps_total'>,
  bundle: TranslationBundle
): string | null {
  const { reason, steps_total: steps } = run;
  const own =
    steps === 1 ? reason?.replace(/^“[^”]+” (failed|was lost): /, '') : reason;
  return own && own !== 'Stopped.' ? translated(own, bundle) : null;
}

/**
 * The most particular first, so that none takes another one for its own: lists,
 * those with words at their beginning, and then those with the most letters.
 */
function byWeight(one: IPattern, other: IPattern): number {
  const [a, b] = [weight(one), weight(other)];
  return a === b ? 0 : b - a;
}

function weight({ sentence, places }: IPattern): number {
  const letters = sentence.length - '%1'.length * places.length;
  if (LISTS.includes(sentence)) {
    return Infinity;
  }
  return sentence.startsWith('%') ? letters : letters + 1000;
}

function patternOf(sentence: string, isContainer: boolean): IPattern {
  const places: IPattern['places'] = [];
  const source = sentence
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replace(/(“?)%(\d)/g, (_, quote: string, number: string) => {
      places.push({ number: Number(number), isWords: isContainer && !quote });
      return `${quote}(.+?)`;
    });
  return { sentence, pattern: new RegExp(`^${source}$`, 's'), places };
}
