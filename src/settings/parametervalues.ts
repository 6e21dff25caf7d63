import type { JSONValue } from '@lumino/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Axis, ParameterType } from '../api';

export type Parsed<T> = { value: T } | { error: string };

/** What a person typed, as a value of the parameter's type. */
export function parseValue(
  type: ParameterType | null,
  text: string,
  trans: TranslationBundle
): Parsed<JSONValue> {
  const bare = text.trim();
  switch (type) {
    case 'string':
      return { value: text };
    case 'boolean':
      return bare === 'true' || bare === 'false'
        ? { value: bare === 'true' }
        : { error: trans.__('Give true or false.') };
    case 'integer':
      return /^[+-]?\d+$/.test(bare) && Number.isSafeInteger(Number(bare))
        ? { value: Number(bare) }
        : { error: trans.__('Give a whole number.') };
    case 'number':
      return bare !== '' && Number.isFinite(Number(bare))
        ? { value: Number(bare) }
        : { error: trans.__('Give a number.') };
    case 'array':
    case 'object':
      return parseJson(type, bare, trans);
    case null:
      try {
        return { value: JSON.parse(bare) };
      } catch {
        return { value: text };
      }
  }
}

function parseJson(
  type: 'array' | 'object',
  text: string,
  trans: TranslationBundle
): Parsed<JSONValue> {
  const error =
    type === 'array'
      ? trans.__('Give a list as JSON: [1, 2, 3].')
      : trans.__('Give an object as JSON: {"name": 1}.');
  try {
    const value = JSON.parse(text);
    const isObject = typeof value === 'object' && value !== null;
    const fits = type === 'array' ? Array.isArray(value) : isObject;
    return fits && (type === 'array') === Array.isArray(value)
      ? { value }
      : { error };
  } catch {
    return { error };
  }
}

const NUMBER = '[+-]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][+-]?\\d+)?';
/** `1..9 step 2` and `1..9 log`, or as on the command line `1:9:2` and `1:9:log`. */
const RANGES = [
  `(${NUMBER})\\s*\\.\\.\\s*(${NUMBER})(?:\\s+(?:step\\s+(${NUMBER})|(log)))?`,
  `(${NUMBER})\\s*:\\s*(${NUMBER})(?:\\s*:\\s*(?:(${NUMBER})|(log)))?`
].map(pattern => new RegExp(`^${pattern}$`));

function rangeIn(text: string): RegExpExecArray | null {
  const bare = text.trim();
  return RANGES[0].exec(bare) ?? RANGES[1].exec(bare);
}

/** Whether what was typed for a number can only mean several. */
export function looksLikeSeveral(
  type: ParameterType | null,
  text: string
): boolean {
  const numeric = type === 'integer' || type === 'number';
  return numeric && (text.includes(',') || rangeIn(text) !== null);
}

/**
 * Several values: `0.1, 0.2`, `[1, 2]`, `1..10`, `0..1 step 0.1` or `0:1:0.1`; for
 * a random choice also `0..1` and `0.001..1 log`. The command line reads the same.
 */
export function parseAxis(
  type: ParameterType | null,
  text: string,
  mode: 'grid' | 'random',
  trans: TranslationBundle
): Parsed<Axis> {
  const bare = text.trim();
  const range = rangeIn(bare);
  if (range && (type === 'integer' || type === 'number' || type === null)) {
    return parseRange(type, range, mode, trans);
  }
  return parseList(type, bare, trans);
}

function parseRange(
  type: ParameterType | null,
  [, low, high, step, log]: RegExpExecArray,
  mode: 'grid' | 'random',
  trans: TranslationBundle
): Parsed<Axis> {
  const [from, to] = [Number(low), Number(high)];
  if (to < from) {
    return { error: trans.__('The range ends before it begins.') };
  }
  if (mode === 'random' && !step) {
    if (log && from <= 0) {
      return { error: trans.__('A logarithmic range must begin above 0.') };
    }
    const kind = type === 'integer' ? 'integer' : 'number';
    const scale = log ? { log: true } : {};
    return { value: { min: from, max: to, ...scale, type: kind } };
  }
  if (log) {
    return {
      error: trans.__('A logarithmic range needs random samples.')
    };
  }
  if (!step && type !== 'integer') {
    return { error: trans.__('Say the step: 0..1 step 0.1.') };
  }
  if (step && Number(step) <= 0) {
    return { error: trans.__('The step must be above 0.') };
  }
  return { value: { from, to, step: step ? Number(step) : 1 } };
}

function parseList(
  type: ParameterType | null,
  text: string,
  trans: TranslationBundle
): Parsed<Axis> {
  let parts: string[];
  if (text.startsWith('[')) {
    try {
      const list = JSON.parse(text) as JSONValue[];
      return list.length > 0
        ? { value: list }
        : { error: trans.__('Give at least one value.') };
    } catch {
      return { error: trans.__('Give a list as JSON: [1, 2, 3].') };
    }
  } else {
    parts = text
      .split(/[,，]/)
      .map(part => part.trim())
      .filter(part => part !== '');
  }
  if (parts.length === 0) {
    return { error: trans.__('Give at least one value.') };
  }
  const values: JSONValue[] = [];
  for (const part of parts) {
    const parsed = parseValue(type, part, trans);
    if ('error' in parsed) {
      return parsed;
    }
    values.push(parsed.value);
  }
  return { value: values };
}

/** How many values an axis has; null when it has any number of them. */
export function countOf(axis: Axis): number | null {
  if (Array.isArray(axis)) {
    return axis.length;
  }
  if ('step' in axis) {
    return Math.floor((axis.to - axis.from) / axis.step + 1e-9) + 1;
  }
  return null;
}

/** How many runs a grid over these axes makes. */
export function sizeOf(axes: readonly Axis[]): number {
  return axes.reduce((size, axis) => size * (countOf(axis) ?? 1), 1);
}

/** An axis as a person would type it. */
export function axisText(axis: Axis): string {
  if (Array.isArray(axis)) {
    const plain = axis.map(textOf).join(', ');
    return axis.every(isPlain) && !rangeIn(plain)
      ? plain
      : JSON.stringify(axis);
  }
  return 'from' in axis
    ? `${axis.from}..${axis.to} step ${axis.step ?? 1}`
    : `${axis.min}..${axis.max}${axis.log ? ' log' : ''}`;
}

/** Whether a list is read as it was when the item is written as it is. */
function isPlain(item: JSONValue): boolean {
  if (typeof item !== 'string') {
    return typeof item === 'number' || typeof item === 'boolean';
  }
  // No separator in it, and nothing that would be read as a number, true or null.
  return (
    /^[^\s,，[]+$/.test(item) && !/^([-+.\d"{]|true$|false$|null$)/.test(item)
  );
}

/** A value as a person would type it. */
export function textOf(value: JSONValue | undefined): string {
  if (value === undefined || value === null) {
    return '';
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
