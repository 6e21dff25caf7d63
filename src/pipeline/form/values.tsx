import { launchIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { Json } from '../schema';
import { useForm } from './context';
import type { IFieldProps } from './Field';
import { readQuantity, writeValue } from './fields';
import {
  BrowseButton,
  IconButton,
  Select,
  TextArea,
  TextInput
} from './inputs';
import { pickFiles } from './pick';

/** A field of one value, inside its row. */
export interface IInputProps extends IFieldProps {
  id: string;
  set: (value: Json | undefined) => void;
  placeholder: string;
}

export function PlainInput(props: IInputProps): JSX.Element {
  const { type, minimum } = props.field.schema;
  const isNumber = type === 'integer' || type === 'number';
  return (
    <TextInput
      id={props.id}
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
      id={props.id}
      value={writeValue(props.value)}
      placeholder={props.placeholder}
      onChange={text => props.set(readQuantity(text))}
    />
  );
}

export function MarkdownInput(props: IInputProps): JSX.Element {
  return (
    <TextArea
      id={props.id}
      value={writeValue(props.value)}
      onChange={text => props.set(text || undefined)}
    />
  );
}

export function EnumInput(props: IInputProps): JSX.Element {
  const { session, isMixed } = useForm();
  const { trans } = session;
  const fallback = props.placeholder;
  return (
    <Select
      id={props.id}
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
  const { session, isMixed } = useForm();
  const { trans } = session;
  const words = { true: trans.__('Yes'), false: trans.__('No') };
  const fallback = props.inherited ?? props.field.schema.default;
  return (
    <Select
      id={props.id}
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
  const { session, node } = useForm();
  const pick = async () => {
    const [path] = await pickFiles(session, { runnable: true });
    if (path) {
      props.set(path);
    }
  };
  return (
    <div className="jp-Pipeline-listRow">
      <TextInput
        id={props.id}
        value={writeValue(props.value)}
        onChange={text => props.set(text)}
      />
      <BrowseButton onClick={() => void pick()} />
      {node !== null && (
        <IconButton
          icon={launchIcon}
          label={session.trans.__('Open')}
          onClick={() => void session.openFile(node)}
        />
      )}
    </div>
  );
}

export function FolderInput(props: IInputProps): JSX.Element {
  const { session } = useForm();
  const pick = async () => {
    const [path] = await pickFiles(session, { folder: true });
    if (path !== undefined) {
      props.set(path || '.');
    }
  };
  return (
    <div className="jp-Pipeline-listRow">
      <TextInput
        id={props.id}
        value={writeValue(props.value)}
        placeholder={props.placeholder}
        list={(props.field.schema.examples ?? []).map(writeValue)}
        onChange={text => props.set(text || undefined)}
      />
      <BrowseButton onClick={() => void pick()} />
    </div>
  );
}

export function ImageInput(props: IInputProps): JSX.Element {
  const { session } = useForm();
  const { nodes, defaults } = session.document;
  const used = [defaults, ...Object.values(nodes)]
    .map(item => (item && 'image' in item ? item.image : undefined))
    .filter(image => typeof image === 'string');
  return (
    <TextInput
      id={props.id}
      value={writeValue(props.value)}
      placeholder={props.placeholder}
      list={[...new Set([...used, ...session.images])]}
      onChange={text => props.set(text || undefined)}
    />
  );
}

export function KernelInput(props: IInputProps): JSX.Element {
  const { session } = useForm();
  const specs = session.docManager.services.kernelspecs.specs?.kernelspecs;
  return (
    <TextInput
      id={props.id}
      value={writeValue(props.value)}
      placeholder={props.placeholder || session.trans.__("the notebook's own")}
      list={Object.keys(specs ?? {})}
      onChange={text => props.set(text || undefined)}
    />
  );
}
