import type { JSONValue as Json } from '@lumino/coreutils';
import * as React from 'react';

import {
  AddButton,
  BrowseButton,
  RemoveButton,
  TextInput,
  useTrans
} from '../ui';
import { useForm } from './context';

/** Texts, one under the other; globs can also be picked. */
export function StringList(props: {
  values: readonly string[];
  inherited?: readonly string[];
  label: string;
  /** They stand for files, which can be picked. */
  isGlobs?: boolean;
  onChange: (values: string[] | undefined) => void;
}): JSX.Element {
  const { trans, pick } = useForm();
  const { values } = props;
  const write = (next: string[]) =>
    props.onChange(next.length ? next : undefined);
  const browse = async () => {
    const paths = (await pick?.({ several: true })) ?? [];
    if (paths.length) {
      write([...values, ...paths.filter(path => !values.includes(path))]);
    }
  };
  return (
    <div>
      {(props.inherited ?? []).map(value => (
        <div key={value} className="jp-Convect-inherited">
          {value}
        </div>
      ))}
      {values.map((value, index) => (
        <div key={index} className="jp-Convect-listRow">
          <TextInput
            value={value}
            label={`${props.label} ${index + 1}`}
            onChange={text =>
              write(values.map((item, at) => (at === index ? text : item)))
            }
          />
          <RemoveButton
            label={trans.__('Remove')}
            onClick={() => write(values.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      <div className="jp-Convect-listRow">
        <AddButton
          label={trans.__('Add')}
          onClick={() => write([...values, ''])}
        />
        {props.isGlobs && pick && (
          <BrowseButton onClick={() => void browse()} />
        )}
      </div>
    </div>
  );
}

type Pairs = { readonly [key: string]: string };

/** A row of names with values: it keeps its key and its place when it is renamed. */
export interface IPairRow {
  key: string;
  name: string;
}

/** The rows of these names: those that were there, in their order, then new ones. */
export function rowsOf(
  before: readonly IPairRow[],
  names: readonly string[]
): IPairRow[] {
  const rows = before.filter(row => names.includes(row.name));
  for (const name of names) {
    if (!rows.some(row => row.name === name)) {
      let key = name;
      while (rows.some(row => row.key === key)) {
        key += '+';
      }
      rows.push({ key, name });
    }
  }
  return rows;
}

/** Names with values. A name that is being typed is kept until it differs from others. */
export function PairList(props: {
  values: Pairs;
  inherited?: Pairs;
  suggestions?: readonly string[];
  label: string;
  onChange: (values: { [key: string]: string } | undefined) => void;
}): JSX.Element {
  const trans = useTrans();
  const { values } = props;
  const [before, setBefore] = React.useState<readonly IPairRow[]>([]);
  const rows = rowsOf(before, Object.keys(values));
  /** The document keeps no order, so the rows that are shown do. */
  const write = (next: readonly IPairRow[], changed: Pairs = {}) => {
    setBefore(next);
    props.onChange(
      next.length
        ? Object.fromEntries(
            next.map(({ name }) => [name, changed[name] ?? values[name] ?? ''])
          )
        : undefined
    );
  };
  const inherited = Object.entries(props.inherited ?? {}).filter(
    ([key]) => !(key in values)
  );
  return (
    <div>
      {inherited.map(([key, value]) => (
        <div key={key} className="jp-Convect-inherited">
          {key}={value}
        </div>
      ))}
      {rows.map(row => (
        <div key={row.key} className="jp-Convect-listRow">
          <TextInput
            value={row.name}
            label={trans.__('%1: name', props.label)}
            placeholder={trans.__('name')}
            list={props.suggestions}
            isLazy
            onChange={name => {
              if (name !== row.name && !(name in values)) {
                write(
                  rows.map(item => (item === row ? { ...row, name } : item)),
                  { [name]: values[row.name] }
                );
              }
            }}
          />
          <TextInput
            value={values[row.name]}
            label={trans.__('%1: value of %2', props.label, row.name)}
            placeholder={trans.__('value')}
            onChange={text => write(rows, { [row.name]: text })}
          />
          <RemoveButton
            label={trans.__('Remove %1', row.name)}
            onClick={() => write(rows.filter(item => item !== row))}
          />
        </div>
      ))}
      {!('' in values) && (
        <AddButton
          label={trans.__('Add')}
          onClick={() => write(rowsOf(rows, [...Object.keys(values), '']))}
        />
      )}
    </div>
  );
}

/** Objects, each with its own small form. */
export function ObjectList(props: {
  values: readonly { [key: string]: Json }[];
  title: string;
  empty: { [key: string]: Json };
  onChange: (values: { [key: string]: Json }[] | undefined) => void;
  render: (
    value: { [key: string]: Json },
    set: (key: string, value: Json | undefined) => void
  ) => React.ReactNode;
}): JSX.Element {
  const trans = useTrans();
  const { values } = props;
  const write = (next: { [key: string]: Json }[]) =>
    props.onChange(next.length ? next : undefined);
  return (
    <div>
      {values.map((value, index) => (
        <fieldset key={index} className="jp-Convect-object">
          <RemoveButton
            label={trans.__('Remove')}
            onClick={() => write(values.filter((_, at) => at !== index))}
          />
          {props.render(value, (key, item) => {
            const next = { ...value };
            if (item === undefined) {
              delete next[key];
            } else {
              next[key] = item;
            }
            write(values.map((old, at) => (at === index ? next : old)));
          })}
        </fieldset>
      ))}
      <AddButton
        label={trans.__('Add')}
        onClick={() => write([...values, props.empty])}
      />
    </div>
  );
}
