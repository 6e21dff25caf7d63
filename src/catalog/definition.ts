import type { Json } from '../pipeline/schema';
import type { IContainer, IDefinition } from './types';

/** A piece of a command: text, or the place where something is put in. */
export interface IPiece {
  text: string;
  isPlace: boolean;
}

const NAMED = new Set([
  'inputValue',
  'inputPath',
  'inputUri',
  'outputPath',
  'outputUri',
  'isPresent'
]);

/** One argument as pieces, whatever is nested in it. */
export function piecesOf(argument: Json): IPiece[] {
  if (Array.isArray(argument)) {
    return argument.flatMap((item, index) => [
      ...(index ? [literal(' ')] : []),
      ...piecesOf(item)
    ]);
  }
  if (argument === null || typeof argument !== 'object') {
    return [literal(String(argument ?? ''))];
  }
  const [kind, body] = Object.entries(argument)[0] ?? ['', null];
  if (NAMED.has(kind)) {
    return [place(`${kind} ${String(body)}`)];
  }
  if (kind === 'concat' && Array.isArray(body)) {
    return body.flatMap(piecesOf);
  }
  if (kind === 'if' && isRecord(body)) {
    return [
      place('if '),
      ...piecesOf(body.cond ?? ''),
      place(' then '),
      ...piecesOf(body.then ?? []),
      ...(body.else === undefined || body.else === null
        ? []
        : [place(' else '), ...piecesOf(body.else)]),
      place(' end')
    ];
  }
  return [place(kind && body === true ? kind : JSON.stringify(argument))];
}

/** The command line of a container, one argument an item. */
export function commandOf(container: IContainer): IPiece[][] {
  return [...(container.command ?? []), ...(container.args ?? [])].map(
    piecesOf
  );
}

/** The component itself, or every one in its graph, that has a container. */
export function containersOf(
  definition: IDefinition
): { name: string; container: IContainer }[] {
  const own = definition.container
    ? [{ name: definition.name, container: definition.container }]
    : [];
  const inner = Object.values(definition.graph?.components ?? {});
  return [...own, ...inner.flatMap(containersOf)];
}

function isRecord(value: Json): value is { [key: string]: Json } {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function literal(text: string): IPiece {
  return { text, isPlace: false };
}

function place(text: string): IPiece {
  return { text, isPlace: true };
}
