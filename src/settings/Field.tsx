import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONValue as Json } from '@lumino/coreutils';
import * as React from 'react';

import { isObject } from '../ui';
import { useForm, words } from './context';
import type { IFieldSchema } from './fields';
import { fieldsOf, resolved, writeValue } from './fields';
import { AmountField, GpuField, RetriesField } from './amounts';
import { ObjectList, PairList, StringList } from './lists';
import type { ISettingProps } from './Row';
import { Row, useRow } from './Row';
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

/** The right field for a property of the format. */
export function SettingField(props: ISettingProps): JSX.Element {
  const { field } = props;
  const { schema } = field;
  const { widgets } = useForm();
  const Own = widgets?.[schema['x-form']?.widget ?? ''];
  if (Own) {
    return <Own {...props} />;
  }
  switch (field.definition) {
    case 'amount':
      return <AmountField {...props} />;
    case 'quantity':
      return <Labelled {...props} as={QuantityInput} />;
    case 'resources':
    case 'distributed':
    case 'dask':
    case 'kubernetes':
      return <Nested {...props} />;
  }
  switch (field.name) {
    case 'gpu':
      return <GpuField {...props} />;
    case 'retries':
      return <RetriesField {...props} />;
    case 'processes':
    case 'timeout':
    case 'hang_after':
    case 'wait':
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
  props: ISettingProps & { as: (props: IInputProps) => JSX.Element }
): JSX.Element {
  const { as: Input, ...rest } = props;
  const { set, trans, isMixed } = useForm();
  const { schema } = props.field;
  return (
    <Row {...useRow(props)}>
      <Input
        {...rest}
        placeholder={
          isMixed(props.path)
            ? '…'
            : writeValue(props.inherited ?? schema.default) ||
              exampleOf(trans, schema)
        }
        set={value => set(props.path, value)}
      />
    </Row>
  );
}

/** What one could write, told from what holds when nothing is written. */
export function exampleOf(
  trans: TranslationBundle,
  schema: IFieldSchema
): string {
  const example = schema['x-form']?.placeholder;
  return example === undefined ? '' : trans.__('for example %1', example);
}

/** An object of the format inside a part: its fields, without a frame. */
function Nested(props: ISettingProps): JSX.Element {
  const value = isObject(props.value) ? props.value : {};
  const inherited = isObject(props.inherited) ? props.inherited : {};
  const { isShown = () => true } = useForm();
  const fields = fieldsOf(props.field.schema).filter(({ name }) =>
    isShown([...props.path, name])
  );
  return (
    <>
      {fields.map(field => (
        <SettingField
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

function PairsField(props: ISettingProps): JSX.Element {
  const { set, env } = useForm();
  const row = useRow(props);
  return (
    <Row {...row} isGroup>
      <PairList
        label={row.label}
        values={texts(props.value)}
        inherited={texts(props.inherited)}
        suggestions={props.field.name === 'env' ? env : undefined}
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

function ListField(props: ISettingProps): JSX.Element {
  const { set } = useForm();
  const { schema } = props.field;
  const row = useRow(props);
  const items: IFieldSchema = resolved(schema.items ?? {});
  const values = Array.isArray(props.value) ? props.value : [];
  const inherited = Array.isArray(props.inherited) ? props.inherited : [];
  return (
    <Row {...row} isGroup>
      {items.type === 'object' ? (
        <ObjectList
          title={row.label}
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
          label={row.label}
          values={values.map(writeValue)}
          inherited={inherited.map(writeValue)}
          isGlobs={schema['x-form']?.widget === 'globs'}
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
  const { trans } = useForm();
  return (
    <>
      {fieldsOf(props.schema).map(field => {
        const label = words(trans, field.schema.title ?? field.name);
        const isRequired = props.schema.required?.includes(field.name);
        const common = {
          field,
          path: [],
          value: props.value[field.name],
          placeholder: writeValue(field.schema.default),
          set: (value: Json | undefined) =>
            props.set(
              field.name,
              value === undefined && isRequired ? '' : value
            )
        };
        return (
          <label key={field.name} className="jp-Convect-entry">
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
