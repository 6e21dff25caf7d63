import * as React from 'react';

import { reachable } from '../graph';
import type { Json } from '../schema';
import { isObject } from '../serialize';
import { useForm } from './context';
import type { IFieldSchema, IFormField } from './fields';
import { fieldsOf, follow, writeValue } from './fields';
import { AmountField, GpuField, RetriesField } from './amounts';
import { RemoveButton, Select } from './inputs';
import { ObjectList, PairList, StringList } from './lists';
import { Row } from './Row';
import type { IInputProps } from './values';
import {
  BooleanInput,
  EnumInput,
  FileInput,
  FolderInput,
  ImageInput,
  KernelInput,
  MarkdownInput,
  PlainInput,
  QuantityInput
} from './values';

export interface IFieldProps {
  field: IFormField;
  path: readonly string[];
  value: Json | undefined;
  /** What the pipeline's defaults say. */
  inherited?: Json;
}

/** The right field for a property of the format. */
export function Field(props: IFieldProps): JSX.Element {
  const { field } = props;
  const { schema } = field;
  switch (field.definition) {
    case 'amount':
      return <AmountField {...props} />;
    case 'quantity':
      return <Labelled {...props} as={QuantityInput} />;
    case 'resources':
    case 'kubernetes':
      return <Nested {...props} />;
  }
  switch (field.name) {
    case 'gpu':
      return <GpuField {...props} />;
    case 'retries':
      return <RetriesField {...props} />;
    case 'timeout':
      return <Labelled {...props} as={QuantityInput} />;
  }
  switch (schema['x-form']?.widget) {
    case 'markdown':
      return <Labelled {...props} as={MarkdownInput} />;
    case 'file':
      return <Labelled {...props} as={FileInput} />;
    case 'folder':
      return <Labelled {...props} as={FolderInput} />;
    case 'image':
      return <Labelled {...props} as={ImageInput} />;
    case 'kernel':
      return <Labelled {...props} as={KernelInput} />;
    case 'nodes':
      return <AfterField {...props} />;
  }
  if (schema.type === 'array') {
    return <ListField {...props} />;
  }
  if (schema.type === 'object') {
    return <PairsField {...props} />;
  }
  if (schema.enum) {
    return <Labelled {...props} as={EnumInput} />;
  }
  if (schema.type === 'boolean') {
    return <Labelled {...props} as={BooleanInput} />;
  }
  return <Labelled {...props} as={PlainInput} />;
}

function Labelled(
  props: IFieldProps & { as: (props: IInputProps) => JSX.Element }
): JSX.Element {
  const { as: Input, ...rest } = props;
  const { set, session, isMixed } = useForm();
  const { schema } = props.field;
  const id = React.useId();
  return (
    <Row
      label={session.words(schema.title ?? props.field.name)}
      help={schema.description && session.words(schema.description)}
      path={props.path}
      isSet={props.value !== undefined}
      fieldId={id}
    >
      <Input
        {...rest}
        id={id}
        placeholder={
          isMixed(props.path)
            ? '…'
            : writeValue(props.inherited ?? schema.default) ||
              schema['x-form']?.placeholder ||
              ''
        }
        set={value => set(props.path, value)}
      />
    </Row>
  );
}

/** An object of the format inside a part: its fields, without a frame. */
function Nested(props: IFieldProps): JSX.Element {
  const value = isObject(props.value) ? props.value : {};
  const inherited = isObject(props.inherited) ? props.inherited : {};
  return (
    <>
      {fieldsOf(props.field.schema).map(field => (
        <Field
          key={field.name}
          field={field}
          path={[...props.path, field.name]}
          value={value[field.name]}
          inherited={inherited[field.name]}
        />
      ))}
    </>
  );
}

function PairsField(props: IFieldProps): JSX.Element {
  const { set, session, node } = useForm();
  const { schema } = props.field;
  const label = session.words(schema.title ?? props.field.name);
  const facts = node === null ? null : session.factsOf(node);
  return (
    <Row
      label={label}
      help={schema.description && session.words(schema.description)}
      path={props.path}
      isSet={props.value !== undefined}
    >
      <PairList
        label={label}
        values={texts(props.value)}
        inherited={texts(props.inherited)}
        suggestions={props.field.name === 'env' ? facts?.env : undefined}
        onChange={values => set(props.path, values)}
      />
    </Row>
  );
}

function texts(value: Json | undefined): { [key: string]: string } {
  return isObject(value)
    ? Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, writeValue(item)])
      )
    : {};
}

function ListField(props: IFieldProps): JSX.Element {
  const { set, session, node } = useForm();
  const { schema, name } = props.field;
  const label = session.words(schema.title ?? name);
  const items: IFieldSchema = follow(schema.items ?? {});
  const values = Array.isArray(props.value) ? props.value : [];
  const inherited = Array.isArray(props.inherited) ? props.inherited : [];
  return (
    <Row
      label={label}
      help={schema.description && session.words(schema.description)}
      path={props.path}
      isSet={props.value !== undefined}
    >
      {items.type === 'object' ? (
        <ObjectList
          title={label}
          values={values.filter(isObject)}
          empty={Object.fromEntries(
            (items.required ?? []).map(key => [key, ''])
          )}
          onChange={next => set(props.path, next)}
          render={(value, setItem) => (
            <Entries schema={items} value={value} set={setItem} />
          )}
        />
      ) : (
        <StringList
          label={label}
          values={values.map(writeValue)}
          inherited={inherited.map(writeValue)}
          filesFrom={
            schema['x-form']?.widget === 'globs'
              ? session.folderOf(node)
              : undefined
          }
          onChange={next => set(props.path, next)}
        />
      )}
    </Row>
  );
}

/** The small form of one object in a list. */
function Entries(props: {
  schema: IFieldSchema;
  value: { [key: string]: Json };
  set: (key: string, value: Json | undefined) => void;
}): JSX.Element {
  const { session } = useForm();
  return (
    <>
      {fieldsOf(props.schema).map(field => {
        const label = session.words(field.schema.title ?? field.name);
        const isRequired = props.schema.required?.includes(field.name);
        const common = {
          field,
          path: [],
          id: '',
          value: props.value[field.name],
          placeholder: writeValue(field.schema.default),
          set: (value: Json | undefined) =>
            props.set(
              field.name,
              value === undefined && isRequired ? '' : value
            )
        };
        return (
          <label key={field.name} className="jp-Pipeline-entry">
            <span>{label}</span>
            {field.schema.enum ? (
              <EnumInput {...common} />
            ) : field.schema.type === 'boolean' ? (
              <BooleanInput {...common} />
            ) : (
              <PlainInput {...common} />
            )}
          </label>
        );
      })}
    </>
  );
}

/** The nodes before this one: what it says, not what follows from its values. */
function AfterField(props: IFieldProps): JSX.Element {
  const { set, session, node } = useForm();
  const { trans } = session;
  const after = (Array.isArray(props.value) ? props.value : []).map(writeValue);
  const later = reachable(session.edges, [node ?? ''], 'down');
  const free = Object.entries(session.document.nodes).filter(
    ([id, item]) =>
      item.kind !== 'group' && !after.includes(id) && !later.has(id)
  );
  const write = (ids: string[]) =>
    set(props.path, ids.length ? ids : undefined);
  return (
    <Row
      label={session.words(props.field.schema.title ?? '')}
      help={session.words(props.field.schema.description ?? '')}
      path={props.path}
      isSet={after.length > 0}
    >
      <div className="jp-Pipeline-chips">
        {after.map(id => (
          <span key={id} className="jp-Pipeline-chip">
            {session.document.nodes[id]?.name ?? id}
            <RemoveButton
              label={trans.__('Remove %1', id)}
              onClick={() => write(after.filter(item => item !== id))}
            />
          </span>
        ))}
        {free.length > 0 && (
          <Select
            value=""
            label={trans.__('Add a node that runs before')}
            options={[
              { value: '', label: trans.__('Add…') },
              ...free.map(([id, item]) => ({
                value: id,
                label: item.name ?? id
              }))
            ]}
            onChange={id => write([...after, id])}
          />
        )}
      </div>
    </Row>
  );
}
