import type { JSONObject, JSONValue as Json } from '@lumino/coreutils';
import * as React from 'react';

import { isObject, TextInput } from '../ui';
import { useForm } from './context';
import type { ISettingProps } from './Row';
import { definitionOf, readQuantity, writeValue } from './fields';
import { Row, useRow } from './Row';

/** An object without what is unset; its one main value alone where that says all. */
function compact(
  value: { [key: string]: Json | undefined },
  main: string
): Json | undefined {
  const rest = Object.entries(value).filter(([, item]) => item !== undefined);
  if (rest.length === 0) {
    return undefined;
  }
  return rest.length === 1 && rest[0][0] === main
    ? rest[0][1]
    : (Object.fromEntries(rest) as JSONObject);
}

function expand(value: Json | undefined, main: string): JSONObject {
  if (isObject(value)) {
    return value;
  }
  return value === undefined ? {} : { [main]: value };
}

interface IPart {
  key: string;
  label: string;
  placeholder?: string;
  list?: readonly string[];
  isWide?: boolean;
}

/** A value that is short when only its main part is set, and an object otherwise. */
function Parts(
  props: ISettingProps & { main: string; parts: readonly IPart[] }
): JSX.Element {
  const { set, isMixed } = useForm();
  const value = expand(props.value, props.main);
  const inherited = expand(props.inherited, props.main);
  return (
    <Row {...useRow(props)} isGroup>
      <div className="jp-Convect-parts">
        {props.parts.map(part => (
          <label
            key={part.key}
            className={`jp-Convect-part${part.isWide ? ' jp-mod-wide' : ''}`}
          >
            <TextInput
              value={writeValue(value[part.key])}
              placeholder={
                isMixed(props.path)
                  ? '…'
                  : writeValue(inherited[part.key]) || part.placeholder || ''
              }
              list={part.list}
              onChange={text =>
                set(
                  props.path,
                  compact(
                    { ...value, [part.key]: readQuantity(text) },
                    props.main
                  )
                )
              }
            />
            <span>{part.label}</span>
          </label>
        ))}
      </div>
    </Row>
  );
}

export function AmountField(props: ISettingProps): JSX.Element {
  const { trans } = useForm();
  return (
    <Parts
      {...props}
      main="request"
      parts={[
        { key: 'request', label: trans.__('request') },
        { key: 'limit', label: trans.__('limit') }
      ]}
    />
  );
}

export function GpuField(props: ISettingProps): JSX.Element {
  const { trans, gpuTypes } = useForm();
  return (
    <Parts
      {...props}
      main="count"
      parts={[
        { key: 'count', label: trans.__('count'), placeholder: '0' },
        {
          key: 'type',
          label: trans.__('type'),
          list: gpuTypes,
          isWide: true
        },
        {
          key: 'resource',
          label: trans.__('resource'),
          placeholder: writeValue(
            definitionOf('gpu').properties?.resource.default
          ),
          isWide: true
        }
      ]}
    />
  );
}

export function RetriesField(props: ISettingProps): JSX.Element {
  const { trans } = useForm();
  return (
    <Parts
      {...props}
      main="count"
      parts={[
        { key: 'count', label: trans.__('times'), placeholder: '0' },
        { key: 'delay', label: trans.__('first delay, s'), placeholder: '1' },
        { key: 'factor', label: trans.__('factor'), placeholder: '2' }
      ]}
    />
  );
}
