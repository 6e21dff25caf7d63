import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IInputProps } from './inputs';
import { FieldContext, TextArea, TextInput } from './inputs';

export interface IFieldProps {
  label: string;
  /** Shown over the label. */
  title?: string;
  /** Stands after the label. */
  extra?: React.ReactNode;
  hint?: string | null;
  /** What is wrong with it; it takes the place of the hint. */
  error?: string | null;
  /** It is part of what is wrong, as is said elsewhere. */
  invalid?: boolean;
  /** How bad what is said is. */
  severity?: 'error' | 'warning' | 'info';
  /** It has a value of its own, not that of the defaults. */
  isSet?: boolean;
  isRequired?: boolean;
  /** It has several inputs, each with a label of its own. */
  isGroup?: boolean;
  /** By which somebody who looks for it finds it. */
  path?: string;
}

/** A label with what it names, and below that how to fill it in or what is wrong. */
export function Field(
  props: IFieldProps & {
    children: React.ReactNode | ((input: IInputProps) => React.ReactNode);
  }
): JSX.Element {
  const { label, title, extra, hint, error, isGroup, children } = props;
  const severity = props.severity ?? (error ? 'error' : undefined);
  const id = React.useId();
  const note = `${id}-note`;
  const said = error || hint;
  const invalid = severity === 'error' || !!props.invalid;
  const input = React.useMemo(
    () => ({
      id,
      'aria-describedby': said ? note : undefined,
      'aria-invalid': invalid
    }),
    [id, note, said, invalid]
  );
  const text = {
    // A tooltip is plain text.
    title: title ? `${label}\n${title.replaceAll('`', '')}` : undefined,
    className: props.isSet ? 'jp-mod-set' : undefined,
    children: (
      <>
        {label}
        {props.isRequired && <span className="jp-Convect-required"> *</span>}
      </>
    )
  };
  return (
    <div
      className="jp-Convect-field"
      // No `jp-mod-error`: with that, a dialog of JupyterLab refuses every answer.
      data-severity={severity}
      data-path={props.path}
      {...(isGroup ? { role: 'group', 'aria-labelledby': `${id}-label` } : {})}
    >
      <span className="jp-Convect-label">
        {isGroup ? (
          <span id={`${id}-label`} {...text} />
        ) : (
          <label htmlFor={id} {...text} />
        )}
        {extra}
      </span>
      <span className="jp-Convect-input">
        <FieldContext.Provider value={isGroup ? null : input}>
          {typeof children === 'function' ? children(input) : children}
        </FieldContext.Provider>
        {said && (
          <span
            id={note}
            className={error ? 'jp-Convect-error' : 'jp-Convect-help'}
            role={error ? 'alert' : undefined}
          >
            {said}
          </span>
        )}
      </span>
    </div>
  );
}

/** Fields that can be folded away. */
export function Section(props: {
  title: string;
  /** What tells it from others. */
  name?: string;
  isOpen: boolean;
  /** How many of its fields are filled in. */
  count?: number;
  onToggle: (open: boolean) => void;
  children: React.ReactNode;
}): JSX.Element {
  const { title, name, isOpen, count, onToggle, children } = props;
  const icon = isOpen ? caretDownIcon : caretRightIcon;
  const id = React.useId();
  return (
    <section className="jp-Convect-section" data-group={name}>
      <h3>
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={isOpen ? id : undefined}
          onClick={() => onToggle(!isOpen)}
        >
          <icon.react tag="span" />
          {title}
          {!isOpen && !!count && (
            <span className="jp-Convect-tag">{count}</span>
          )}
        </button>
      </h3>
      {isOpen && <div id={id}>{children}</div>}
    </section>
  );
}

/** A field for text, of several lines if asked. */
export function TextField(
  props: IFieldProps & {
    value: string;
    onChange: (value: string) => void;
    example?: string;
    lines?: number;
    /** What to choose from, if one likes. */
    suggestions?: readonly string[];
  }
): JSX.Element {
  const { value, onChange, example, lines, suggestions, ...field } = props;
  const common = { value, onChange, placeholder: example };
  return (
    <Field {...field}>
      {lines ? (
        <TextArea rows={lines} {...common} />
      ) : (
        <TextInput list={suggestions} {...common} />
      )}
    </Field>
  );
}
