import type { JSONValue as Json } from '@lumino/coreutils';

import { isObject } from '../ui/json';
import { GROUPS, SCHEMA } from './formschema';

/** A property of the format as its form wants to know it. */
export interface IFieldSchema {
  title?: string;
  description?: string;
  type?: string;
  enum?: readonly Json[];
  const?: Json;
  default?: Json;
  examples?: readonly Json[];
  minimum?: number;
  properties?: { readonly [key: string]: IFieldSchema };
  required?: readonly string[];
  items?: IFieldSchema;
  oneOf?: readonly IFieldSchema[];
  additionalProperties?: boolean | IFieldSchema;
  $ref?: string;
  'x-form'?: { group?: GroupName; widget?: string; placeholder?: string };
}

export type GroupName = keyof typeof GROUPS;

export interface IFormField {
  name: string;
  schema: IFieldSchema;
  /** The definition that it refers to: `amount`, `gpu`, `volume`, … */
  definition: string | null;
}

export interface IFormGroup {
  name: GroupName;
  title: string;
  fields: IFormField[];
}

const DEFINITIONS = SCHEMA.$defs as unknown as { [name: string]: IFieldSchema };

/** What people do not set in a form. */
const HIDDEN = new Set(['kind', 'extra', 'members', 'component']);

export function definitionOf(name: string): IFieldSchema {
  return DEFINITIONS[name];
}

/** A schema with what it refers to, its own words first. */
export function resolved(schema: IFieldSchema): IFieldSchema {
  const name = refName(schema);
  return name === null ? schema : { ...DEFINITIONS[name], ...schema };
}

export function refName(schema: IFieldSchema): string | null {
  return schema.$ref ? schema.$ref.slice('#/$defs/'.length) : null;
}

export function fieldsOf(schema: IFieldSchema): IFormField[] {
  return Object.entries(schema.properties ?? {})
    .filter(([name]) => !HIDDEN.has(name))
    .map(([name, item]) => ({
      name,
      schema: resolved(item),
      definition: refName(item)
    }));
}

/** What is set most often comes first. */
const ORDER: readonly GroupName[] = [
  'general',
  'parameters',
  'flow',
  'resources',
  'environment',
  'data',
  'behaviour',
  'distributed',
  'dask',
  'kubernetes'
];

/** The form of a definition (`notebook`, `settings`, …), part by part. */
export function groupsOf(
  definition: string,
  isShown: (name: string) => boolean = () => true
): IFormGroup[] {
  const fields = fieldsOf(definitionOf(definition)).filter(field =>
    isShown(field.name)
  );
  return ORDER.map(name => ({
    name,
    title: GROUPS[name],
    fields: fields.filter(
      field => (field.schema['x-form']?.group ?? 'general') === name
    )
  })).filter(group => group.fields.length > 0);
}

/** A quantity as it was typed: a plain number becomes one. */
export function readQuantity(text: string): Json | undefined {
  const trimmed = text.trim();
  if (trimmed === '') {
    return undefined;
  }
  return /^\d+(\.\d+)?$/.test(trimmed) ? Number(trimmed) : trimmed;
}

/** A typed text as a value of a parameter; what does not fit its type stays text. */
export function readValue(
  text: string,
  type: string | undefined
): Json | undefined {
  if (text === '') {
    return undefined;
  }
  if (type === 'string' || text.includes('${{')) {
    return text;
  }
  try {
    const value = JSON.parse(text) as Json;
    return fits(value, type) ? value : text;
  } catch {
    return text;
  }
}

function fits(value: Json, type: string | undefined): boolean {
  switch (type) {
    case 'integer':
      return Number.isInteger(value);
    case 'number':
      return typeof value === 'number';
    case 'boolean':
      return typeof value === 'boolean';
    case 'array':
      return Array.isArray(value);
    case 'object':
      return isObject(value);
    default:
      // Of unknown type: a text in quotes may be meant as it stands.
      return typeof value !== 'string';
  }
}

export function writeValue(value: Json | undefined): string {
  if (value === undefined) {
    return '';
  }
  return typeof value === 'string' ? value : JSON.stringify(value);
}
