import { launchIcon } from '@jupyterlab/ui-components';
import type { JSONValue as Json } from '@lumino/coreutils';
import * as React from 'react';

import { BrowseButton, IconButton, Select, TextArea, TextInput } from '../ui';
import { useForm } from './context';
import type { ISettingProps } from './Row';
import { readQuantity, writeValue } from './fields';

/** A field of one value, inside its row. */
export interface IInputProps extends ISettingProps {
  set: (value: Json | undefined) => void;
  placeholder: string;
}

export function PlainInput(props: IInputProps): JSX.Element {
  const { type, minimum } = props.field.schema;
  const isNumber = type === 'integer' || type === 'number';
  return (
    <TextInput
      type={isNumber ? 'number' : 'text'}
      min={minimum}
      value={writeValue(props.value)}
      placeholder={props.placeholder}
      onChange={text =>
        props.set(text === '' ? undefined : isNumber ? Number(text) : text)
      }
    />
  );
}

export function QuantityInput(props: IInputProps): JSX.Element {
  return (
    <TextInput
      value={writeValue(props.value)}
      placeholder={props.placeholder}
      onChange={text => props.set(readQuantity(text))}
    />
  );
}

export function MarkdownInput(props: IInputProps): JSX.Element {
  return (
    <TextArea
      value={writeValue(props.value)}
      onChange={text => props.set(text || undefined)}
    />
  );
}

export function EnumInput(props: IInputProps): JSX.Element {
  const { trans, isMixed } = useForm();
  const fallback = props.placeholder;
  return (
    <Select
      value={writeValue(props.value)}
      options={[
        {
          value: '',
          label: isMixed(props.path)
            ? '…'
            : fallback
              ? trans.__('Default (%1)', fallback)
              : trans.__('Default')
        },
        ...(props.field.schema.enum ?? []).map(item => ({
          value: writeValue(item),
          label: writeValue(item)
        }))
      ]}
      onChange={value => props.set(value || undefined)}
    />
  );
}

export function BooleanInput(props: IInputProps): JSX.Element {
  const { trans, isMixed } = useForm();
  const words = { true: trans.__('Yes'), false: trans.__('No') };
  const fallback = props.inherited ?? props.field.schema.default;
  return (
    <Select
      value={writeValue(props.value)}
      options={[
        {
          value: '',
          label: isMixed(props.path)
            ? '…'
            : trans.__('Default (%1)', fallback ? words.true : words.false)
        },
        { value: 'true', label: words.true },
        { value: 'false', label: words.false }
      ]}
      onChange={value => props.set(value === '' ? undefined : value === 'true')}
    />
  );
}

export function FileInput(props: IInputProps): JSX.Element {
  const { trans, pick, open } = useForm();
  const browse = async () => {
    const [path] = (await pick?.({ runnable: true })) ?? [];
    if (path) {
      props.set(path);
    }
  };
  return (
    <div className="jp-Convect-listRow">
      <TextInput
        value={writeValue(props.value)}
        onChange={text => props.set(text)}
      />
      {pick && <BrowseButton onClick={() => void browse()} />}
      {open && (
        <IconButton icon={launchIcon} label={trans.__('Open')} onClick={open} />
      )}
    </div>
  );
}

export function FolderInput(props: IInputProps): JSX.Element {
  const { pick } = useForm();
  const browse = async () => {
    const [path] = (await pick?.({ folder: true })) ?? [];
    if (path !== undefined) {
      props.set(path || '.');
    }
  };
  return (
    <div className="jp-Convect-listRow">
      <TextInput
        value={writeValue(props.value)}
        placeholder={props.placeholder}
        list={(props.field.schema.examples ?? []).map(writeValue)}
        onChange={text => props.set(text || undefined)}
      />
      {pick && <BrowseButton onClick={() => void browse()} />}
    </div>
  );
}

export function ImageInput(props: IInputProps): JSX.Element {
  const { images, offering } = useForm();
  const offered = offering?.images ?? [];
  const value = writeValue(props.value);
  const notes = offered.find(({ image }) => image === value)?.notes;
  return (
    <>
      <TextInput
        value={value}
        placeholder={props.placeholder}
        list={[...new Set([...offered.map(({ image }) => image), ...images])]}
        onChange={text => props.set(text || undefined)}
      />
      {notes && <span className="jp-Convect-hint">{notes}</span>}
    </>
  );
}

export function KernelInput(props: IInputProps): JSX.Element {
  const { trans, kernels } = useForm();
  return (
    <TextInput
      value={writeValue(props.value)}
      placeholder={props.placeholder || trans.__("the notebook's own")}
      list={kernels}
      onChange={text => props.set(text || undefined)}
    />
  );
}
