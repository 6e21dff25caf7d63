import { HTMLSelect } from '@jupyterlab/ui-components';
import type { JSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IParameter } from '../api';
import type { IInputProps } from '../ui';
import { Field, useTrans } from '../ui';
import { countOf, textOf } from './parametervalues';
import type { IEntries, IEntry, ISweepChoice } from './sweepchoice';
import { axisOf, changedEntry, entryOf, isChanged } from './sweepchoice';

/** A form with parameters, each of which can take several values. */
export interface IParameterForm {
  readonly parameters: readonly IParameter[];
  readonly entries: IEntries;
  readonly sweepChoice: ISweepChoice;
  /** What is wrong with which field; that of a parameter is called `parameter <name>`. */
  readonly errors: Readonly<Record<string, string>>;
  /** What a value can refer to, where it can refer to anything. */
  readonly references?: readonly string[];
  /** Null takes what was typed away. */
  setEntry(parameter: IParameter, entry: IEntry | null): void;
  setSweepChoice(change: Partial<ISweepChoice>): void;
}

interface IParameterInput {
  input: IInputProps;
  form: IParameterForm;
  parameter: IParameter;
}

/** The field of a parameter, of its type. */
export function Parameter(props: {
  form: IParameterForm;
  parameter: IParameter;
}): JSX.Element {
  const { form, parameter } = props;
  const trans = useTrans();
  const { name, help, type } = parameter;
  const entry = entryOf(form.entries, parameter);
  const { several } = entry;
  const canRefer = form.references !== undefined;
  const axis = several
    ? axisOf(type, entry, form.sweepChoice, trans, canRefer)
    : null;
  const count = axis && 'value' in axis ? countOf(axis.value) : null;
  return (
    <Field
      label={name}
      extra={type && <span className="jp-Convect-type">{type}</span>}
      hint={help}
      error={form.errors[`parameter ${name}`]}
    >
      {input => (
        <span className="jp-Convect-inline">
          {several || form.references || isTyped(parameter) ? (
            <Typed input={input} form={form} parameter={parameter} />
          ) : (
            <Chosen input={input} form={form} parameter={parameter} />
          )}
          <button
            className="jp-Convect-several"
            type="button"
            aria-pressed={several}
            aria-label={trans.__('Several values for %1', name)}
            title={trans.__('Several values: one run for each')}
            onClick={() =>
              form.setEntry(
                parameter,
                changedEntry(form.entries, parameter, toggled(parameter, entry))
              )
            }
          >
            {several && count ? `× ${count}` : trans.__('Sweep')}
          </button>
          {isChanged(form.entries, parameter) && (
            <button
              className="jp-Convect-several"
              type="button"
              aria-label={trans.__('Back to the default of %1', name)}
              title={trans.__('Back to the default')}
              onClick={() => form.setEntry(parameter, null)}
            >
              ↺
            </button>
          )}
        </span>
      )}
    </Field>
  );
}

/**
 * The field for what is typed. It is one element for one value and for several:
 * who types a comma types on. A text of several lines has room for them.
 */
function Typed(props: IParameterInput): JSX.Element {
  const { input, form, parameter } = props;
  const { type, source } = parameter;
  const listId = React.useId();
  const { text, several } = entryOf(form.entries, parameter);
  const set = setterOf(form, parameter);
  const suggestions = suggestionsFor(form, parameter);
  const common = {
    ...input,
    className: 'jp-mod-styled',
    value: text ?? '',
    spellCheck: false,
    placeholder: several ? placeholderFor(type) : (source ?? undefined),
    onChange: (
      event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>
    ) => set(event.target.value)
  };
  const lines = common.value.split('\n').length;
  if (type === 'string' && lines > 1) {
    // What was pasted into the field of one line is edited on here.
    return <textarea {...common} autoFocus rows={Math.min(lines + 1, 8)} />;
  }
  return (
    <>
      <input
        {...common}
        inputMode={
          !several && !form.references && isNumber(type) ? 'decimal' : 'text'
        }
        list={suggestions.length > 0 ? listId : undefined}
        onPaste={event => {
          const pasted = event.clipboardData.getData('text');
          if (type === 'string' && pasted.trim().includes('\n')) {
            event.preventDefault();
            const { selectionStart, selectionEnd, value } = event.currentTarget;
            const before = value.slice(0, selectionStart ?? undefined);
            set(before + pasted + value.slice(selectionEnd ?? value.length));
          }
        }}
      />
      {suggestions.length > 0 && (
        <datalist id={listId}>
          {suggestions.map(item => (
            <option key={item} value={item} />
          ))}
        </datalist>
      )}
    </>
  );
}

function setterOf(
  form: IParameterForm,
  parameter: IParameter
): (text: string) => void {
  return text =>
    form.setEntry(parameter, changedEntry(form.entries, parameter, { text }));
}

/** What one may choose and may type as well, where a value can refer to something. */
function suggestionsFor(
  { references }: IParameterForm,
  parameter: IParameter
): string[] {
  return references ? [...valuesOf(parameter).map(textOf), ...references] : [];
}

/** The values that it can have, where they can be listed. */
function valuesOf({ type, choices }: IParameter): readonly JSONValue[] {
  return type === 'boolean' ? [true, false] : (choices ?? []);
}

/** Whether a single value is typed, and not chosen. */
function isTyped(parameter: IParameter): boolean {
  return valuesOf(parameter).length === 0;
}

function isNumber(type: IParameter['type']): boolean {
  return type === 'number' || type === 'integer';
}

/** The field for a single value that is chosen. */
function Chosen(props: IParameterInput): JSX.Element {
  const { input, form, parameter } = props;
  const { choices } = parameter;
  const text = entryOf(form.entries, parameter).text ?? '';
  const set = setterOf(form, parameter);
  if (choices.length > 0) {
    return (
      <HTMLSelect
        {...input}
        value={text}
        onChange={event => set(event.target.value)}
      >
        {!choices.some(choice => textOf(choice) === text) && (
          // It has no default, or one that is not among them.
          <option value={text}>{text}</option>
        )}
        {choices.map(choice => (
          <option key={textOf(choice)} value={textOf(choice)}>
            {textOf(choice)}
          </option>
        ))}
      </HTMLSelect>
    );
  }
  return (
    <input
      {...input}
      type="checkbox"
      checked={text === 'true'}
      onChange={event => set(String(event.target.checked))}
    />
  );
}

function placeholderFor(type: IParameter['type']): string {
  switch (type) {
    case 'integer':
      return '1, 2, 4  |  1..10';
    case 'number':
      return '0.1, 0.2  |  0..1 step 0.1';
    case 'boolean':
      return 'true, false';
    default:
      return 'a, b, c';
  }
}

/** From one value to several takes all that are possible, else keeps the one; back again keeps the first. */
function toggled(parameter: IParameter, { several, text }: IEntry): IEntry {
  const value = text ?? '';
  if (!several) {
    const all = valuesOf(parameter).map(textOf).join(', ');
    return { several: true, text: all || value };
  }
  const first = value.split(/,|\.\./)[0].trim();
  return { several: false, text: value.startsWith('[') ? '' : first };
}
