import type { IConvectApi, IOffering } from '../api';

/** How long an answer is good, in milliseconds: it is a matter of configuration. */
const GOOD = 60_000;
const NOTHING: IOffering = { profiles: [], images: [], registries: [] };

const known = new WeakMap<
  IConvectApi,
  Map<string, { asked: number; answer: Promise<IOffering> }>
>();

/**
 * The profiles and images that an administrator offers, in the namespace of a runtime if
 * one is named. What is wrong with them is said by the check of a run, not here.
 */
export function offeringOf(
  api: IConvectApi,
  runtime?: string
): Promise<IOffering> {
  const answers = known.get(api) ?? new Map();
  known.set(api, answers);
  const key = runtime ?? '';
  const before = answers.get(key);
  if (before && Date.now() - before.asked < GOOD) {
    return before.answer;
  }
  const answer = api.profiles(runtime ? { runtime } : {}).catch(() => {
    answers.delete(key);
    return NOTHING;
  });
  answers.set(key, { asked: Date.now(), answer });
  return answer;
}
