import * as React from 'react';

import type { Json } from '../schema';
import { useForm } from './context';
import { AddButton, BrowseButton, RemoveButton, TextInput } from './inputs';
import { pickFiles } from './pick';

/** Texts, one under the other; globs can also be picked. */
export function StringList(props: {
  values: readonly string[];
  inherited?: readonly string[];
  label: string;
  /** The folder, on the server, that picked files are relative to; none to pick. */
  filesFrom?: string;
  onChange: (values: string[] | undefined) => void;
}): JSX.Element {
  const { session } = useForm();
  const { trans } = session;
  const { values } = props;
  const write = (next: string[]) =>
    props.onChange(next.length ? next : undefined);
  const pick = async () => {
    const paths = await pickFiles(session, {
      several: true,
      from: props.filesFrom
    });
    if (paths.length) {
      write([...values, ...paths.filter(path => !values.includes(path))]);
    }
  };
  return (
    <div className="jp-Pipeline-list">
      {(props.inherited ?? []).map(value => (
        <div key={value} className="jp-Pipeline-inherited">
          {value}
        </div>
      ))}
      {values.map((value, index) => (
        <div key={index} className="jp-Pipeline-listRow">
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
      <div className="jp-Pipeline-listRow">
        <AddButton
          label={trans.__('Add')}
          onClick={() => write([...values, ''])}
        />
        {props.filesFrom !== undefined && (
          <BrowseButton onClick={() => void pick()} />
        )}
      </div>
    </div>
  );
}

type Pairs = { readonly [key: string]: string };

/** Names with values. A name that is being typed is kept until it differs from others. */
export function PairList(props: {
  values: Pairs;
  inherited?: Pairs;
  suggestions?: readonly string[];
  label: string;
  onChange: (values: { [key: string]: string } | undefined) => void;
}): JSX.Element {
  const { trans } = useForm().session;
  const rows = Object.entries(props.values);
  const write = (next: [string, string][]) =>
    props.onChange(next.length ? Object.fromEntries(next) : undefined);
  const inherited = Object.entries(props.inherited ?? {}).filter(
    ([key]) => !(key in props.values)
  );
  return (
    <div className="jp-Pipeline-list">
      {inherited.map(([key, value]) => (
        <div key={key} className="jp-Pipeline-inherited">
          {key}={value}
        </div>
      ))}
      {rows.map(([key, value], index) => (
        <div key={index} className="jp-Pipeline-listRow">
          <TextInput
            value={key}
            label={trans.__('%1: name', props.label)}
            placeholder={trans.__('name')}
            list={props.suggestions}
            isLazy
            onChange={name => {
              if (name === key || !(name in props.values)) {
                write(
                  rows.map((row, at) => (at === index ? [name, value] : row))
                );
              }
            }}
          />
          <TextInput
            value={value}
            label={trans.__('%1: value of %2', props.label, key)}
            placeholder={trans.__('value')}
            onChange={text =>
              write(rows.map((row, at) => (at === index ? [key, text] : row)))
            }
          />
          <RemoveButton
            label={trans.__('Remove %1', key)}
            onClick={() => write(rows.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      {!('' in props.values) && (
        <AddButton
          label={trans.__('Add')}
          onClick={() => write([...rows, ['', '']])}
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
  const { trans } = useForm().session;
  const { values } = props;
  const write = (next: { [key: string]: Json }[]) =>
    props.onChange(next.length ? next : undefined);
  return (
    <div className="jp-Pipeline-list">
      {values.map((value, index) => (
        <fieldset key={index} className="jp-Pipeline-object">
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
