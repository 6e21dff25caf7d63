import type { Json } from './schema';
import { isObject } from './serialize';

/** What an expression `${{ … }}` points to. */
export type Reference =
  | { kind: 'parameter'; name: string }
  | { kind: 'output'; node: string; output: string }
  | { kind: 'state'; node: string }
  | { kind: 'each'; name: string }
  | { kind: 'run'; name: string };

const QUOTED = `'(?:[^'\\\\]|\\\\.)*'|"(?:[^"\\\\]|\\\\.)*"`;
const EXPRESSION = new RegExp(
  `\\$\\{\\{((?:[^{}'"]|${QUOTED})*|[^{}]*)\\}\\}`,
  'gs'
);
/** A text, a number, a word (with what it refers to), or a sign. */
const TOKEN = new RegExp(
  `(${QUOTED})|(-?\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?(?![\\p{L}\\p{N}_.]))|([\\p{L}_][\\p{L}\\p{N}_-]*(?:\\.[\\p{L}\\p{N}_-]+)*)|(==|!=|<=|>=|&&|\\|\\||[<>!()[\\],])|(\\s+)|(.)`,
  'gsu'
);

export function parameterExpression(name: string): string {
  return `\${{ parameters.${name} }}`;
}

export function outputExpression(node: string, output: string): string {
  return `\${{ nodes.${node}.outputs.${output} }}`;
}

export function itemExpression(name: string): string {
  return `\${{ each.${name} }}`;
}

/** What stands between the braces of a text that is one expression; else null. */
export function innerOf(text: string): string | null {
  const match = /^\$\{\{((?:(?!\}\}).)*)\}\}$/s.exec(text.trim());
  return match ? match[1].trim() : null;
}

/** An expression as people write it, without the braces around it. */
export function shownOf(value: unknown): string {
  return typeof value === 'string' ? (innerOf(value) ?? value) : '';
}

/** What was written in a field for one expression; nothing when it is empty. */
export function expressionOf(text: string): string | undefined {
  const trimmed = text.trim();
  return trimmed === '' || text.includes('${{')
    ? trimmed || undefined
    : `\${{ ${trimmed} }}`;
}

/** The reference that a value consists of, if it is one expression and no more. */
export function wholeReference(value: unknown): Reference | null {
  const inner = typeof value === 'string' ? innerOf(value) : null;
  const [only, ...others] = inner === null ? [] : placesIn(inner);
  return only && others.length === 0 && only.text === inner
    ? only.reference
    : null;
}

/** Every reference in a value, at any depth. */
export function referencesIn(value: unknown): Reference[] {
  if (typeof value === 'string') {
    return [...value.matchAll(EXPRESSION)].flatMap(match =>
      placesIn(match[1]).map(({ reference }) => reference)
    );
  }
  if (Array.isArray(value)) {
    return value.flatMap(referencesIn);
  }
  return isObject(value) ? Object.values(value).flatMap(referencesIn) : [];
}

/**
 * The value with each reference to a node sent through `change`, which answers the
 * node's new id, or null when the reference is gone (`output` is missing where the state
 * is meant). An expression is gone with any of its references; what consisted only of an
 * expression that is gone becomes `undefined`.
 */
export function mapNodes(
  value: Json,
  change: (node: string, output?: string) => string | null
): Json | undefined {
  return mapReferences(value, (reference, text) => {
    if (reference.kind !== 'output' && reference.kind !== 'state') {
      return text;
    }
    const { node } = reference;
    const output = reference.kind === 'output' ? reference.output : undefined;
    const to = change(node, output);
    return to && text.replace(`nodes.${node}`, `nodes.${to}`);
  });
}

/** The value with a parameter of the pipeline under another name. */
export function mapParameter(value: Json, old: string, name: string): Json {
  return mapReferences(value, (reference, text) =>
    reference.kind === 'parameter' && reference.name === old
      ? `parameters.${name}`
      : text
  )!;
}

type Change = (reference: Reference, text: string) => string | null;

function mapReferences(value: Json, change: Change): Json | undefined {
  if (typeof value === 'string') {
    let isGone = false;
    const mapped = value.replace(EXPRESSION, (text, inner: string) => {
      const changed = mapExpression(inner, change);
      isGone ||= changed === null;
      return changed === null
        ? ''
        : changed === inner
          ? text
          : `\${{${changed}}}`;
    });
    return isGone && innerOf(value) !== null ? undefined : mapped;
  }
  if (Array.isArray(value)) {
    return value
      .map(item => mapReferences(item, change))
      .filter(item => item !== undefined);
  }
  if (isObject(value)) {
    const mapped: { [key: string]: Json } = {};
    for (const [key, item] of Object.entries(value)) {
      const changed = mapReferences(item, change);
      if (changed !== undefined) {
        mapped[key] = changed;
      }
    }
    return mapped;
  }
  return value;
}

function mapExpression(inner: string, change: Change): string | null {
  let mapped = '';
  let end = 0;
  for (const { text, at, reference } of placesIn(inner)) {
    const to = change(reference, text);
    if (to === null) {
      return null;
    }
    mapped += inner.slice(end, at) + to;
    end = at + text.length;
  }
  return mapped + inner.slice(end);
}

/** An expression in few words: an output by its name alone where that tells which it is. */
export function briefExpression(text: string): string {
  const inner = innerOf(text) ?? text;
  const places = placesIn(inner);
  const names = new Map<string, Set<string>>();
  for (const { text: path, reference } of places) {
    const name = lastOf(reference);
    names.set(name, (names.get(name) ?? new Set()).add(path));
  }
  let brief = '';
  let end = 0;
  for (const { text: path, at, reference } of places) {
    const name = lastOf(reference);
    const isUnique = names.get(name)!.size === 1;
    const long = 'node' in reference ? `${reference.node}.${name}` : name;
    const short =
      reference.kind === 'state' || (!isUnique && 'node' in reference)
        ? long
        : name;
    brief += inner.slice(end, at) + short;
    end = at + path.length;
  }
  return brief + inner.slice(end);
}

function lastOf(reference: Reference): string {
  switch (reference.kind) {
    case 'output':
      return reference.output;
    case 'state':
      return 'state';
    default:
      return reference.name;
  }
}

/** A reference, and where in an expression it stands. */
interface IPlace {
  text: string;
  at: number;
  reference: Reference;
}

function placesIn(inner: string): IPlace[] {
  const found: IPlace[] = [];
  let isReadable = true;
  let wasOperand = false;
  for (const match of inner.matchAll(TOKEN)) {
    const [text, quoted, number, word, sign, space] = match;
    if (space) {
      continue;
    }
    const isOperand = !!(quoted || number || (word && word !== 'in'));
    isReadable &&=
      !(isOperand && wasOperand) && !(!isOperand && !word && !sign);
    wasOperand = isOperand;
    const reference = word ? readReference(word) : null;
    if (reference) {
      found.push({ text, at: match.index, reference });
    }
  }
  if (isReadable) {
    return found;
  }
  // Names of outputs may have any characters, as long as they stand alone.
  const text = inner.trim();
  const reference = readReference(text);
  return reference && !/&&|\|\||[=<>!]=|[()"']/.test(text)
    ? [{ text, at: inner.indexOf(text), reference }]
    : found;
}

function readReference(word: string): Reference | null {
  const [root, ...rest] = word.split('.');
  if (rest.length === 0 || rest.includes('')) {
    return null;
  }
  switch (root) {
    case 'parameters':
      return { kind: 'parameter', name: rest.join('.') };
    case 'each':
      return { kind: 'each', name: rest.join('.') };
    case 'run':
      return rest.length === 1 ? { kind: 'run', name: rest[0] } : null;
    case 'nodes':
      if (rest[1] === 'outputs' && rest.length >= 3) {
        const output = rest.slice(2).join('.');
        return { kind: 'output', node: rest[0], output };
      }
      return rest[1] === 'state' && rest.length === 2
        ? { kind: 'state', node: rest[0] }
        : null;
  }
  return null;
}
