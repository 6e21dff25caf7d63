import type { Json } from './schema';
import { isObject } from './serialize';

/** What an expression `${{ … }}` points to. */
export type Reference =
  | { kind: 'parameter'; name: string }
  | { kind: 'output'; node: string; output: string }
  | { kind: 'run'; name: string };

const EXPRESSION = /\$\{\{(.*?)\}\}/gs;

export function parameterExpression(name: string): string {
  return `\${{ parameters.${name} }}`;
}

export function outputExpression(node: string, output: string): string {
  return `\${{ nodes.${node}.outputs.${output} }}`;
}

/** The reference that a value consists of, if it is one expression and no more. */
export function wholeReference(value: unknown): Reference | null {
  if (typeof value !== 'string') {
    return null;
  }
  const match = /^\$\{\{((?:(?!\}\}).)*)\}\}$/s.exec(value.trim());
  return match ? readReference(match[1]) : null;
}

/** Every reference in a value, at any depth. */
export function referencesIn(value: unknown): Reference[] {
  if (typeof value === 'string') {
    return [...value.matchAll(EXPRESSION)]
      .map(match => readReference(match[1]))
      .filter(reference => reference !== null);
  }
  if (Array.isArray(value)) {
    return value.flatMap(referencesIn);
  }
  return isObject(value) ? Object.values(value).flatMap(referencesIn) : [];
}

/**
 * The value with each reference to a node's output sent through `change`, which
 * answers the node's new id, or null when the reference is gone. What consisted only of a
 * reference that is gone becomes `undefined`.
 */
export function mapNodes(
  value: Json,
  change: (node: string, output: string) => string | null
): Json | undefined {
  if (typeof value === 'string') {
    const whole = wholeReference(value);
    if (whole?.kind === 'output' && change(whole.node, whole.output) === null) {
      return undefined;
    }
    return value.replace(EXPRESSION, (text, inner: string) => {
      const reference = readReference(inner);
      if (reference?.kind !== 'output') {
        return text;
      }
      const node = change(reference.node, reference.output);
      if (node === reference.node) {
        return text;
      }
      return node === null ? '' : outputExpression(node, reference.output);
    });
  }
  if (Array.isArray(value)) {
    return value
      .map(item => mapNodes(item, change))
      .filter(item => item !== undefined);
  }
  if (isObject(value)) {
    const mapped: { [key: string]: Json } = {};
    for (const [key, item] of Object.entries(value)) {
      const changed = mapNodes(item, change);
      if (changed !== undefined) {
        mapped[key] = changed;
      }
    }
    return mapped;
  }
  return value;
}

function readReference(inner: string): Reference | null {
  const [root, ...rest] = inner.trim().split('.');
  if (root === 'parameters' && rest.length >= 1 && rest[0]) {
    return { kind: 'parameter', name: rest.join('.') };
  }
  if (root === 'run' && rest.length === 1 && rest[0]) {
    return { kind: 'run', name: rest[0] };
  }
  if (root === 'nodes' && rest[1] === 'outputs' && rest.length >= 3) {
    return { kind: 'output', node: rest[0], output: rest.slice(2).join('.') };
  }
  return null;
}
