import { isObject } from '../ui/json';
import type { IDocument, Json } from './schema';
import { SHAPE, VERSION } from './schema';

type JsonObject = { [key: string]: Json };

interface IShape {
  $ref?: string;
  oneOf?: readonly IShape[];
  type?: string;
  const?: unknown;
  properties?: { readonly [key: string]: IShape };
  items?: IShape;
  additionalProperties?: IShape;
}

const OBJECTS = [
  'nodes',
  'layout',
  'comments',
  'components',
  'parameters',
  'defaults'
];
const ROOT: IShape = SHAPE;
const DEFINITIONS: { [name: string]: IShape } = SHAPE.$defs;

/** Why a text is not a pipeline; `BrokenPage` has the words for people. */
export interface IMalformed {
  code:
    | 'malformed-json'
    | 'newer-version'
    | 'bad-version'
    | 'foreign-format'
    | 'not-an-object'
    | 'inexact-number';
  /** The property that is wrong, or the parser's own words. */
  detail?: string;
}

export type Parsed =
  | { document: IDocument; malformed?: undefined }
  | { document?: undefined; malformed: IMalformed };

/**
 * The document in a file's text, or why there is none.
 *
 * Only what the editor cannot do without is checked here; the server's
 * validator says everything else, in the editor.
 */
export function parse(text: string): Parsed {
  let value: Json;
  try {
    value = JSON.parse(text.replace(/^\ufeff/, ''));
  } catch (error) {
    const detail = (error as Error).message;
    return { malformed: { code: 'malformed-json', detail } };
  }
  const malformed = check(value) ?? checkNumbers(text);
  return malformed
    ? { malformed }
    : { document: value as unknown as IDocument };
}

/** The one text of a document, the same to the byte as the server writes it. */
export function dumps(document: IDocument): string {
  return write(document as unknown as Json, ROOT, '\n') + '\n';
}

export { isObject };

/** The parts that the shared model takes apart have to be what it expects. */
export function check(value: Json): IMalformed | null {
  if (!isObject(value)) {
    return { code: 'not-an-object' };
  }
  const version = value.convect;
  if (version === undefined && ('pipelines' in value || 'doc_type' in value)) {
    return { code: 'foreign-format' };
  }
  if (typeof version === 'number' && version > VERSION) {
    return { code: 'newer-version', detail: String(version) };
  }
  if (version !== VERSION) {
    return { code: 'bad-version' };
  }
  for (const part of OBJECTS) {
    if ((part === 'nodes' || part in value) && !isObject(value[part])) {
      return { code: 'not-an-object', detail: part };
    }
  }
  for (const part of ['nodes', 'comments']) {
    for (const [id, item] of Object.entries(value[part] ?? {})) {
      if (!isObject(item)) {
        return { code: 'not-an-object', detail: `${part}.${id}` };
      }
    }
  }
  return null;
}

const TOKENS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** Whole numbers beyond 2^53 would be written back as others. */
function checkNumbers(text: string): IMalformed | null {
  for (const [token] of text.matchAll(TOKENS)) {
    if (/^-?\d{16,}$/.test(token) && !Number.isSafeInteger(Number(token))) {
      return { code: 'inexact-number', detail: token };
    }
  }
  return null;
}

function write(value: Json, shape: IShape, newline: string): string {
  const inner = newline + '  ';
  if (Array.isArray(value)) {
    if (value.length <= 4 && value.every(item => typeof item === 'number')) {
      return '[' + value.map(item => JSON.stringify(item)).join(', ') + ']';
    }
    const items = value.map(item => write(item, shape.items ?? {}, inner));
    return '[' + inner + items.join(',' + inner) + newline + ']';
  }
  if (isObject(value)) {
    const own = shapeOf(value, shape);
    const items = ordered(value, own).map(key => {
      const text = write(value[key], shapeOfItem(key, own), inner);
      return `${JSON.stringify(key)}: ${text}`;
    });
    return items.length
      ? '{' + inner + items.join(',' + inner) + newline + '}'
      : '{}';
  }
  return JSON.stringify(value);
}

function ordered(value: JsonObject, shape: IShape): string[] {
  const keys = Object.keys(value).filter(key => value[key] !== undefined);
  const known = shape.properties ?? {};
  return [
    ...Object.keys(known).filter(key => value[key] !== undefined),
    ...keys.filter(key => !Object.hasOwn(known, key)).sort()
  ];
}

function follow(shape: IShape): IShape {
  return shape.$ref
    ? { ...DEFINITIONS[shape.$ref.slice('#/$defs/'.length)], ...shape }
    : shape;
}

/** The definition that describes this object, among those the schema allows. */
function shapeOf(value: JsonObject, shape: IShape): IShape {
  const own = follow(shape);
  if (!own.oneOf) {
    return own;
  }
  const objects = own.oneOf.map(follow).filter(item => item.type === 'object');
  return (
    objects.find(item => item.properties?.kind?.const === value.kind) ??
    objects[0] ??
    {}
  );
}

function shapeOfItem(key: string, shape: IShape): IShape {
  const known = shape.properties ?? {};
  if (Object.hasOwn(known, key)) {
    return known[key];
  }
  return shape.additionalProperties ?? {};
}
