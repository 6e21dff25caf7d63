import type { LabIcon } from '@jupyterlab/ui-components';
import { closeIcon, folderIcon, HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import { sentenceOf } from '../api';
import { useTrans } from './hooks';

/** Whether inputs only show what they hold. */
export const ReadOnly = React.createContext(false);

/** What ties an input to its label and to what is said about it; spread on the input. */
export interface IInputProps {
  id: string | undefined;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean;
}

/** The field that an input stands in; null where the input has a label of its own. */
export const FieldContext = React.createContext<IInputProps | null>(null);

function useField(label: string | undefined): object {
  const field = React.useContext(FieldContext);
  return label === undefined ? (field ?? {}) : { 'aria-label': label };
}

export interface ITextProps {
  value: string;
  placeholder?: string;
  /** What it is called where no field does. */
  label?: string;
  /** What to choose from, if one likes. */
  list?: readonly string[];
  type?: 'text' | 'number';
  min?: number;
  /** Write when the field is left, not with every letter. */
  isLazy?: boolean;
  /** It takes the keyboard when it appears. */
  autoFocus?: boolean;
  onChange: (value: string) => void;
}

/**
 * A text field that writes with every letter. What is typed stays as it was
 * typed while the field has the keyboard, even where the document writes it
 * another way; what somebody else writes meanwhile takes its place.
 */
export function TextInput(props: ITextProps): JSX.Element {
  const [draft, setDraft] = useDraft(props.value);
  const listId = React.useId();
  return (
    <>
      <input
        {...useField(props.label)}
        className="jp-mod-styled"
        type={props.type ?? 'text'}
        min={props.min}
        step="any"
        value={draft ?? props.value}
        placeholder={props.placeholder}
        readOnly={React.useContext(ReadOnly)}
        list={props.list?.length ? listId : undefined}
        spellCheck={false}
        autoFocus={props.autoFocus}
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
export function useDraft(
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
  return (
    <textarea
      {...useField(props.label)}
      className="jp-mod-styled"
      rows={props.rows ?? 3}
      value={props.value}
      placeholder={props.placeholder}
      readOnly={React.useContext(ReadOnly)}
      spellCheck={false}
      onChange={event => props.onChange(event.target.value)}
    />
  );
}

export interface IOption {
  value: string;
  label: string;
  disabled?: boolean;
}

/** A choice; a value that is not among the options is shown as it is. */
export function Select(props: {
  value: string;
  label?: string;
  options: readonly IOption[];
  onChange: (value: string) => void;
}): JSX.Element {
  const isKnown = props.options.some(option => option.value === props.value);
  return (
    <HTMLSelect
      {...useField(props.label)}
      className="jp-Convect-select"
      value={props.value}
      disabled={React.useContext(ReadOnly)}
      onChange={event => props.onChange(event.target.value)}
    >
      {!isKnown && <option value={props.value}>{props.value}</option>}
      {props.options.map(option => (
        <option
          key={option.value}
          value={option.value}
          disabled={option.disabled}
        >
          {option.label}
        </option>
      ))}
    </HTMLSelect>
  );
}

export function CheckBox(props: {
  checked: boolean;
  label?: string;
  onChange: (checked: boolean) => void;
}): JSX.Element {
  return (
    <input
      {...useField(props.label)}
      type="checkbox"
      checked={props.checked}
      disabled={React.useContext(ReadOnly)}
      onChange={event => props.onChange(event.target.checked)}
    />
  );
}

/** A choice of yes or no, with its words beside it. */
export function Check(props: {
  label: string;
  checked: boolean;
  isDisabled?: boolean;
  onChange: (checked: boolean) => void;
}): JSX.Element {
  return (
    <label className="jp-Convect-inline">
      <input
        type="checkbox"
        checked={props.checked}
        disabled={props.isDisabled}
        onChange={event => props.onChange(event.target.checked)}
      />
      {props.label}
    </label>
  );
}

/** A small button with a picture, where something can be changed. */
export function IconButton(props: {
  icon: LabIcon;
  label: string;
  onClick: () => void;
}): JSX.Element | null {
  return React.useContext(ReadOnly) ? null : (
    <button
      type="button"
      className="jp-Convect-iconButton"
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
  return (
    <IconButton
      icon={folderIcon}
      label={useTrans().__('Choose…')}
      onClick={props.onClick}
    />
  );
}

export function AddButton(props: {
  label: string;
  onClick: () => void;
}): JSX.Element | null {
  return React.useContext(ReadOnly) ? null : (
    <button type="button" className="jp-Convect-link" onClick={props.onClick}>
      + {props.label}
    </button>
  );
}

/** A button with an icon, a word, or both. */
export function Action(props: {
  label: string;
  title?: string;
  icon?: LabIcon;
  wide?: boolean;
  disabled?: boolean;
  onClick: () => void;
}): JSX.Element {
  const { label, title, icon, wide, disabled, onClick } = props;
  return (
    <button
      className="jp-Convect-action"
      title={title ?? label}
      aria-label={label}
      disabled={disabled}
      onClick={onClick}
    >
      {icon && <icon.react tag="span" />}
      {(wide || !icon) && <span>{label}</span>}
    </button>
  );
}

/** What to look for, in a list or a text. */
export function SearchInput(
  props: Omit<React.InputHTMLAttributes<HTMLInputElement>, 'onChange'> & {
    label: string;
    value: string;
    onChange: (text: string) => void;
  }
): JSX.Element {
  const { label, onChange, ...rest } = props;
  return (
    <input
      placeholder={label}
      aria-label={label}
      {...rest}
      className="jp-mod-styled jp-Convect-search"
      type="search"
      onChange={event => onChange(event.target.value)}
    />
  );
}

/** What a person should know before going on. */
export function Warning(props: {
  title?: string;
  children: React.ReactNode;
}): JSX.Element {
  return (
    <div
      className="jp-Convect-message"
      data-severity="warning"
      role="status"
      title={props.title}
    >
      {props.children}
    </div>
  );
}

/** What went wrong, if anything did. */
export function Failure({ error }: { error: unknown }): JSX.Element {
  return (
    <>
      {!!error && (
        <div className="jp-Convect-message" data-severity="error" role="alert">
          {sentenceOf(error)}
        </div>
      )}
    </>
  );
}

/** Why there is nothing to see, and what to do about it. */
export function Empty(props: {
  icon?: LabIcon;
  title?: string;
  children: React.ReactNode;
}): JSX.Element {
  const { icon: Icon, title, children } = props;
  return (
    <div className="jp-Convect-empty">
      {Icon && <Icon.react tag="div" width="48px" height="48px" />}
      {title && <h3>{title}</h3>}
      <p>{children}</p>
    </div>
  );
}
