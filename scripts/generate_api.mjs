/**
 * Writes `src/api/schema.ts` from the description of the REST interface: the types that it
 * speaks, and a method for each operation that has a name.
 * Objects that the description leaves open are JSON, numbers may be any number.
 */
import { URL } from 'node:url';
import fs from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';

const SOURCE = 'jupyterlab_convect/routes/openapi.yaml';
const TARGET = 'src/api/schema.ts';
const JSON_TYPE = 'application/json';
const HEAD = `// Generated from ${SOURCE} by scripts/generate_api.mjs.
import type { INotebookContent } from '@jupyterlab/nbformat';
import type { JSONSchema7 } from 'json-schema';
import type { JSONObject, JSONValue } from '@lumino/coreutils';

import type { AnyNumber } from './numbers';
import type { IDefinition, IRequest, Space } from './types';

`;

/** The type for what the description does not say enough of; undefined for all else. */
function typeOf(schema, { path }) {
  const name = path?.split('/').pop();
  if (name === 'Notebook') {
    return 'INotebookContent';
  }
  if (name === 'Number') {
    return 'AnyNumber';
  }
  if (name === 'Space') {
    return 'Space';
  }
  const formats = {
    'json-schema': 'JSONSchema7',
    component: 'IDefinition',
    request: 'IRequest'
  };
  if (schema.format in formats) {
    return formats[schema.format];
  }
  const others = schema.additionalProperties;
  const isOpen = !schema.properties && (!others || isAnything(others));
  if (schema.type === 'object' && isOpen) {
    return schema.nullable ? 'JSONObject | null' : 'JSONObject';
  }
  if (schema.type === 'array' && isAnything(schema.items)) {
    return 'JSONValue[]';
  }
  return isAnything(schema) ? 'JSONValue' : undefined;
}

function isAnything(schema) {
  return Object.keys(schema).every(key =>
    ['nullable', 'description'].includes(key)
  );
}

const nodes = await openapiTS(new URL(`../${SOURCE}`, import.meta.url), {
  transform: (schema, options) => {
    const type = typeOf(schema, options);
    return type && ts.factory.createTypeReferenceNode(type);
  }
});
const described = name => nodes.find(node => node.name?.text === name);

function member(node, name) {
  return node?.members?.find(({ name: key }) => key?.text === name);
}

/** The type of a member, followed through references to anything but a schema. */
function typeIn(node, name) {
  const type = member(node, name)?.type;
  if (type?.kind !== ts.SyntaxKind.IndexedAccessType) {
    return type?.kind === ts.SyntaxKind.NeverKeyword ? undefined : type;
  }
  const section = type.objectType.indexType?.literal.text;
  return section === undefined || section === 'schemas'
    ? type
    : typeIn(
        typeIn(described('components'), section),
        type.indexType.literal.text
      );
}

const printed = node => astToString(node).trim();

/** What an operation takes: its one place in the path or all of them, then its query or body. */
function takes(operation) {
  const parameters = typeIn(operation, 'parameters');
  const path = typeIn(parameters, 'path');
  const taken = [];
  if (path) {
    const [only, ...others] = path.members;
    taken.push(
      others.length > 0
        ? `path: ${printed(path)}`
        : `${only.name.text}: ${printed(only.type)}`
    );
  }
  for (const [name, holder] of [
    ['query', parameters],
    ['requestBody', operation]
  ]) {
    const type = typeIn(holder, name);
    if (type) {
      const body = typeIn(typeIn(type, 'content'), JSON_TYPE) ?? type;
      const mark = member(holder, name).questionToken ? '?' : '';
      taken.push(
        `${name === 'query' ? name : 'body'}${mark}: ${printed(body)}`
      );
    }
  }
  return taken.join(', ');
}

/** What it answers: JSON, a file, or nothing. */
function answers(operation) {
  const responses = typeIn(operation, 'responses');
  const success = responses.members.find(({ name }) => /^2/.test(name.text));
  const content = typeIn(typeIn(responses, success.name.text), 'content');
  const json = typeIn(content, JSON_TYPE);
  return json ? printed(json) : content ? 'Blob' : 'void';
}

const methods = [];
const table = [];
for (const { name: path, type: item } of described('paths').members) {
  for (const verb of ['get', 'post', 'put', 'patch', 'delete']) {
    const name = member(item, verb)?.type.indexType?.literal.text;
    if (name) {
      const operation = typeIn(described('operations'), name);
      const [{ text } = {}] =
        ts.getSyntheticLeadingComments(member(item, verb)) ?? [];
      const answer = answers(operation);
      methods.push(
        `    /*${text ?? '*'}*/\n    ${name}(${takes(operation)}): Promise<${answer}>;\n`
      );
      const kind = answer === 'Blob' ? 'BLOB' : verb.toUpperCase();
      table.push(`    ${name}: '${kind} ${path.text.slice(1)}',\n`);
    }
  }
}

const declaration = ts.factory.createTypeAliasDeclaration(
  [ts.factory.createModifier(ts.SyntaxKind.ExportKeyword)],
  'Components',
  undefined,
  ts.factory.createTypeLiteralNode(
    ['schemas', 'parameters'].map(name => member(described('components'), name))
  )
);
const text = `${HEAD}${astToString(declaration)}
/** The REST interface, one method per verb. */
export interface IOperations {
${methods.join('')}}

/** Where each of them is; BLOB for a file. */
export const OPERATIONS: Record<keyof IOperations, string> = {
${table.join('')}};
`.replaceAll('components[', 'Components[');
if (!fs.existsSync(TARGET) || fs.readFileSync(TARGET, 'utf8') !== text) {
  fs.writeFileSync(TARGET, text);
}
