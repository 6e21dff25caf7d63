import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IParameter } from '../../api';
import type { IInputProps } from '../../ui';
import { Field, useTrans } from '../../ui';
import type { RunForm } from './form';
import { countOf, parseAxis, textOf } from './values';

/** A field for each parameter of its type, each of which can take several values. */
export function Parameters({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { parameters } = form;
  if (form.isOpaque || parameters.length === 0) {
    return (
      <div className="jp-Convect-hint">
        {form.isOpaque
          ? trans.__('Its parameters cannot be read.')
          : form.isPipeline
            ? trans.__(
                'No parameters. Add some under Properties in the pipeline editor to choose their values here.'
              )
            : trans.__(
                'No parameters. Tag a cell “parameters” to choose its values here.'
              )}
      </div>
    );
  }
  return (
    <fieldset className="jp-Convect-group">
      <legend>{trans.__('Parameters')}</legend>
      <Offered form={form} />
      {parameters.map(parameter => (
        <Parameter key={parameter.name} form={form} parameter={parameter} />
      ))}
    </fieldset>
  );
}

/** The sweep of last time, to be taken with one press. */
function Offered({ form }: { form: RunForm }): JSX.Element | null {
  const trans = useTrans();
  const entries = Object.entries(form.offered);
  if (entries.length === 0) {
    return null;
  }
  const values = entries.map(([name, { text }]) => `${name}: ${text}`);
  return (
    <p className="jp-Convect-help">
      {trans.__('Last time it was a sweep over %1.', values.join('; '))}{' '}
      <button
        type="button"
        className="jp-Convect-link"
        onClick={() => form.takeOffered()}
      >
        {trans.__('Sweep again')}
      </button>
    </p>
  );
}

interface IParameterInput {
  input: IInputProps;
  form: RunForm;
  parameter: IParameter;
}

function Parameter(props: {
  form: RunForm;
  parameter: IParameter;
}): JSX.Element {
  const { form, parameter } = props;
  const trans = useTrans();
  const { name, help, type } = parameter;
  const { text, several } = form.entry(parameter);
  const error = form.outcome.errors[`parameter ${name}`];
  const axis = several
    ? parseAxis(type, text ?? '', form.choice.mode, form.trans)
    : null;
  const count = axis && 'value' in axis ? countOf(axis.value) : null;
  return (
    <Field
      label={name}
      extra={type && <span className="jp-Convect-type">{type}</span>}
      hint={help}
      error={error}
    >
      {input => (
        <span className="jp-Convect-inline">
          {several || isTyped(parameter) ? (
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
              form.setEntry(parameter, toggled(parameter, several, text))
            }
          >
            {several && count ? `× ${count}` : trans.__('Sweep')}
          </button>
          {form.isChanged(parameter) && (
            <button
              className="jp-Convect-several"
              type="button"
              aria-label={trans.__('Back to the default of %1', name)}
              title={trans.__('Back to the default')}
              onClick={() => form.reset(parameter)}
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
  const { text, several } = form.entry(parameter);
  const set = (value: string) => form.setEntry(parameter, { text: value });
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
    <input
      {...common}
      inputMode={!several && isNumber(type) ? 'decimal' : 'text'}
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
  );
}

/** Whether a single value is typed, and not chosen. */
function isTyped({ type, choices }: IParameter): boolean {
  return choices.length === 0 && type !== 'boolean';
}

function isNumber(type: IParameter['type']): boolean {
  return type === 'number' || type === 'integer';
}

/** The field for a single value that is chosen. */
function Chosen(props: IParameterInput): JSX.Element {
  const { input, form, parameter } = props;
  const { choices } = parameter;
  const text = form.entry(parameter).text ?? '';
  const set = (value: string) => form.setEntry(parameter, { text: value });
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
function toggled(
  { type, choices }: IParameter,
  several: boolean,
  text: string | null
): { several: boolean; text: string } {
  const value = text ?? '';
  if (!several) {
    const all = type === 'boolean' ? [true, false] : choices;
    return { several: true, text: all.map(textOf).join(', ') || value };
  }
  const first = value.split(/,|\.\./)[0].trim();
  return { several: false, text: value.startsWith('[') ? '' : first };
}
