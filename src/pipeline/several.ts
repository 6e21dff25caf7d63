import { JSONExt } from '@lumino/coreutils';

import type { Json } from './schema';
import { isObject } from './serialize';

type JsonObject = { [key: string]: Json };
type Value = Json | undefined;

/**
 * What several values have in common: the value that all have, the items that
 * all lists hold, the properties that all objects agree on; else nothing.
 */
export function common(values: readonly Value[]): Value {
  const [first, ...rest] = values;
  if (rest.every(value => isSame(value, first))) {
    return first;
  }
  if (values.every(isListOrNone)) {
    const lists = values.map(value => value ?? []);
    return lists[0].filter(item => lists.every(list => holds(list, item)));
  }
  if (values.every(isObjectOrNone)) {
    const objects = values.map(value => value ?? {});
    const shared: JsonObject = {};
    for (const key of Object.keys(objects[0])) {
      const value = common(objects.map(object => object[key]));
      if (value !== undefined) {
        shared[key] = value;
      }
    }
    return shared;
  }
  return undefined;
}

export function areSame(values: readonly Value[]): boolean {
  return values.every(value => isSame(value, values[0]));
}

/**
 * One of several values after what they have in common was changed from `shown`
 * to `next`: of lists and objects only what differs between those two changes.
 */
export function changed(own: Value, shown: Value, next: Value): Value {
  const all = [own, shown, next];
  if (next !== undefined && all.every(isListOrNone)) {
    const [mine = [], before = [], after = []] = all as Json[][];
    const kept = mine.filter(
      item => !holds(before, item) || holds(after, item)
    );
    return [...kept, ...after.filter(item => !holds(kept, item))];
  }
  if (next !== undefined && all.every(isObjectOrNone)) {
    const [mine = {}, before = {}, after = {}] = all as JsonObject[];
    const result = { ...mine };
    for (const key of Object.keys({ ...before, ...after })) {
      if (isSame(before[key], after[key])) {
        continue;
      }
      const value = changed(mine[key], before[key], after[key]);
      if (value === undefined) {
        delete result[key];
      } else {
        result[key] = value;
      }
    }
    return result;
  }
  return next;
}

export function valueAt(value: Value, path: readonly string[]): Value {
  return path.reduce<Value>(
    (at, key) => (isObject(at) ? at[key] : undefined),
    value
  );
}

function isSame(one: Value, two: Value): boolean {
  return one === undefined || two === undefined
    ? one === two
    : JSONExt.deepEqual(one, two);
}

function holds(list: readonly Json[], item: Json): boolean {
  return list.some(other => JSONExt.deepEqual(other, item));
}

function isListOrNone(value: Value): value is Json[] | undefined {
  return value === undefined || Array.isArray(value);
}

function isObjectOrNone(value: Value): value is JsonObject | undefined {
  return value === undefined || isObject(value);
}
