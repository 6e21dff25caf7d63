/**
 * JSON with every number in it. JSON has no NaN and no infinities; the server and
 * we write them as `{"$numberDouble": "NaN"}`, `"Infinity"` or `"-Infinity"`.
 * Integers that no number of JavaScript holds exactly stay what the server makes of
 * them, `{"$numberInteger": "123…"}`: so nobody sends back others than came.
 */
const MARK = '$numberDouble';
const INTEGER = '$numberInteger';

/** A number as the server gives it. */
export type AnyNumber = number | { [INTEGER]: string };

const WORDS = ['NaN', 'Infinity', '-Infinity'];

export function parseJson<T>(text: string): T {
  return JSON.parse(text, text.includes(MARK) ? revive : undefined) as T;
}

export function stringifyJson(value: unknown): string {
  return JSON.stringify(value, (_, item) =>
    isNotFinite(item) ? { [MARK]: String(item) } : item
  );
}

/** The digits of an integer that is too large for a number; null for all else. */
export function digitsOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null) {
    return null;
  }
  const digits = (value as Record<string, unknown>)[INTEGER];
  return typeof digits === 'string' && /^-?\d+$/.test(digits) ? digits : null;
}

/** What can be compared with `<`; null for what is not a number. */
export function comparable(value: unknown): number | bigint | null {
  const digits = digitsOf(value);
  return digits !== null
    ? BigInt(digits)
    : typeof value === 'number'
      ? value
      : null;
}

/** A number as charts take it, with as many digits as it can have. */
export function asNumber(value: unknown): number {
  return Number(comparable(value) ?? NaN);
}

/** NaN or infinite. */
export function isNotFinite(value: unknown): value is number {
  return typeof value === 'number' && !Number.isFinite(value);
}

function revive(_: string, item: unknown): unknown {
  if (typeof item !== 'object' || item === null) {
    return item;
  }
  const word = (item as Record<string, unknown>)[MARK];
  const isNumber =
    typeof word === 'string' &&
    WORDS.includes(word) &&
    Object.keys(item).length === 1;
  return isNumber ? Number(word) : item;
}
