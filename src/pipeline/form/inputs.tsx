import type { LabIcon } from '@jupyterlab/ui-components';
import { closeIcon, folderIcon, HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import { useForm } from './context';

export interface ITextProps {
  id?: string;
  value: string;
  placeholder?: string;
  label?: string;
  list?: readonly string[];
  type?: 'text' | 'number';
  min?: number;
  /** Write when the field is left, not with every letter. */
  isLazy?: boolean;
  onChange: (value: string) => void;
}

/**
 * A text field that writes with every letter. What is typed stays as it was
 * typed while the field has the keyboard, even where the document writes it
 * another way; what somebody else writes meanwhile takes its place.
 */
export function TextInput(props: ITextProps): JSX.Element {
  const { isReadOnly } = useForm();
  const [draft, setDraft] = useDraft(props.value);
  const listId = React.useId();
  return (
    <>
      <input
        id={props.id}
        className="jp-mod-styled jp-Pipeline-input"
        type={props.type ?? 'text'}
        min={props.min}
        step="any"
        aria-label={props.label}
        value={draft ?? props.value}
        placeholder={props.placeholder}
        readOnly={isReadOnly}
        list={props.list?.length ? listId : undefined}
        spellCheck={false}
        onBlur={() => {
          if (props.isLazy && draft !== null && draft !== props.value) {
            props.onChange(draft);
          }
          setDraft(null);
        }}
        onKeyDown={event => {
          if (event.key === 'Enter' && props.isLazy && draft !== null) {
            props.onChange(draft);
          }
        }}
        onChange={event => {
          setDraft(event.target.value);
          if (!props.isLazy) {
            props.onChange(event.target.value);
          }
        }}
      />
      {props.list && props.list.length > 0 && (
        <datalist id={listId}>
          {props.list.map(item => (
            <option key={item} value={item} />
          ))}
        </datalist>
      )}
    </>
  );
}

/** What was typed, until the field is left or the value changes by itself. */
function useDraft(
  value: string
): [string | null, (text: string | null) => void] {
  const [draft, setDraft] = React.useState<string | null>(null);
  const isTyping = React.useRef(false);
  React.useLayoutEffect(() => {
    if (!isTyping.current) {
      setDraft(null);
    }
  }, [value]);
  React.useLayoutEffect(() => {
    isTyping.current = false;
  });
  const type = (text: string | null) => {
    isTyping.current = text !== null;
    setDraft(text);
  };
  return [draft, type];
}

export function TextArea(props: ITextProps & { rows?: number }): JSX.Element {
  const { isReadOnly } = useForm();
  return (
    <textarea
      id={props.id}
      className="jp-mod-styled jp-Pipeline-input"
      aria-label={props.label}
      rows={props.rows ?? 3}
      value={props.value}
      placeholder={props.placeholder}
      readOnly={isReadOnly}
      onChange={event => props.onChange(event.target.value)}
    />
  );
}

export interface IOption {
  value: string;
  label: string;
}

export function Select(props: {
  id?: string;
  value: string;
  label?: string;
  options: readonly IOption[];
  onChange: (value: string) => void;
}): JSX.Element {
  const { isReadOnly } = useForm();
  const isKnown = props.options.some(option => option.value === props.value);
  return (
    <HTMLSelect
      id={props.id}
      className="jp-Pipeline-select"
      aria-label={props.label}
      value={props.value}
      disabled={isReadOnly}
      onChange={event => props.onChange(event.target.value)}
    >
      {!isKnown && <option value={props.value}>{props.value}</option>}
      {props.options.map(option => (
        <option key={option.value} value={option.value}>
          {option.label}
        </option>
      ))}
    </HTMLSelect>
  );
}

/** A small button with a picture. */
export function IconButton(props: {
  icon: LabIcon;
  label: string;
  onClick: () => void;
}): JSX.Element | null {
  const { isReadOnly } = useForm();
  return isReadOnly ? null : (
    <button
      type="button"
      className="jp-Pipeline-iconButton"
      title={props.label}
      aria-label={props.label}
      onClick={props.onClick}
    >
      <props.icon.react tag="span" />
    </button>
  );
}

export function RemoveButton(props: {
  label: string;
  onClick: () => void;
}): JSX.Element {
  return <IconButton icon={closeIcon} {...props} />;
}

export function BrowseButton(props: { onClick: () => void }): JSX.Element {
  const { session } = useForm();
  return (
    <IconButton
      icon={folderIcon}
      label={session.trans.__('Choose…')}
      onClick={props.onClick}
    />
  );
}

export function AddButton(props: {
  label: string;
  onClick: () => void;
}): JSX.Element | null {
  const { isReadOnly } = useForm();
  return isReadOnly ? null : (
    <button type="button" className="jp-Pipeline-add" onClick={props.onClick}>
      + {props.label}
    </button>
  );
}
