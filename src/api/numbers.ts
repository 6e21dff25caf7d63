/**
 * JSON with every number in it. JSON has no NaN and no infinities; the server and
 * we write them as `{"$numberDouble": "NaN"}`, `"Infinity"` or `"-Infinity"`.
 */
const MARK = '$numberDouble';
const WORDS = ['NaN', 'Infinity', '-Infinity'];

export function parseJson<T>(text: string): T {
  return JSON.parse(text, text.includes(MARK) ? revive : undefined) as T;
}

export function stringifyJson(value: unknown): string {
  return JSON.stringify(value, (_, item) =>
    isNotFinite(item) ? { [MARK]: String(item) } : item
  );
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
