import type { JSONObject, JSONValue } from '@lumino/coreutils';

export function isObject(value: unknown): value is JSONObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object without what is undefined. */
export function compact<T extends object>(value: T): T {
  return Object.fromEntries(
    Object.entries(value).filter(([, item]) => item !== undefined)
  ) as T;
}

/** An object with another value at a path, without objects that are empty because of it. */
export function withValue(
  object: JSONObject,
  [key, ...rest]: readonly string[],
  value: JSONValue | undefined
): JSONObject {
  const inner = object[key];
  const next =
    rest.length === 0
      ? value
      : withValue(isObject(inner) ? inner : {}, rest, value);
  const isEmpty =
    next === undefined ||
    (rest.length > 0 && Object.keys(next as object).length === 0);
  return compact({
    ...object,
    [key]: isEmpty ? undefined : next
  }) as JSONObject;
}
