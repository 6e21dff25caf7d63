import * as React from 'react';

/** What ties an input to its label and to what is said about it; spread on the input. */
export interface IInputProps {
  id: string;
  'aria-describedby': string | undefined;
  'aria-invalid': boolean;
}

export interface IFieldProps {
  label: string;
  /** Stands after the label. */
  extra?: React.ReactNode;
  hint?: string | null;
  /** What is wrong with it; it takes the place of the hint. */
  error?: string | null;
  /** It is part of what is wrong, as is said elsewhere. */
  invalid?: boolean;
}

/** A label beside what it names, and below that how to fill it in or what is wrong. */
export function Field(
  props: IFieldProps & { children: (input: IInputProps) => React.ReactNode }
): JSX.Element {
  const { label, extra, hint, error, invalid, children } = props;
  const id = React.useId();
  const note = `${id}-note`;
  return (
    <div className="jp-Convect-field">
      <span className="jp-Convect-label">
        <label htmlFor={id}>{label}</label>
        {extra}
      </span>
      <span className="jp-Convect-input">
        {children({
          id,
          'aria-describedby': error || hint ? note : undefined,
          'aria-invalid': !!error || !!invalid
        })}
        {error ? (
          <span id={note} className="jp-Convect-error" role="alert">
            {error}
          </span>
        ) : (
          hint && (
            <span id={note} className="jp-Convect-help">
              {hint}
            </span>
          )
        )}
      </span>
    </div>
  );
}

/** Fields that are folded away until somebody wants them; `open` unfolds them. */
export function Group(props: {
  title: string;
  open: boolean;
  children: React.ReactNode;
}): JSX.Element {
  const { title, open, children } = props;
  const [isOpen, setOpen] = React.useState(open);
  React.useEffect(() => setOpen(was => was || open), [open]);
  return (
    <details
      className="jp-Convect-group"
      open={isOpen}
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{title}</summary>
      {children}
    </details>
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
  return (
    <Field {...field}>
      {input => {
        const common = {
          ...input,
          className: 'jp-mod-styled',
          value,
          placeholder: example,
          spellCheck: false,
          onChange: (
            event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>
          ) => onChange(event.target.value)
        };
        if (lines) {
          return <textarea rows={lines} {...common} />;
        }
        if (!suggestions?.length) {
          return <input {...common} />;
        }
        const list = `${input.id}-list`;
        return (
          <>
            <input {...common} list={list} />
            <datalist id={list}>
              {suggestions.map(suggestion => (
                <option key={suggestion} value={suggestion} />
              ))}
            </datalist>
          </>
        );
      }}
    </Field>
  );
}
