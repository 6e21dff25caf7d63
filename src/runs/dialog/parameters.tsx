import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IParameter } from '../../api';
import { useTrans } from '../../ui';
import type { RunForm } from './form';
import { countOf, parseAxis, textOf } from './values';

/** A field for each parameter of its type, each of which can take several values. */
export function Parameters({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { parameters } = form;
  if (form.isOpaque || parameters.length === 0) {
    return (
      <div className="jp-ConvectRuns-hint">
        {form.isOpaque
          ? trans.__('Its parameters cannot be read.')
          : trans.__(
              'No parameters. Tag a cell “parameters” to choose its values here.'
            )}
      </div>
    );
  }
  return (
    <fieldset className="jp-ConvectRuns-group">
      <legend>{trans.__('Parameters')}</legend>
      {parameters.map(parameter => (
        <Parameter key={parameter.name} form={form} parameter={parameter} />
      ))}
    </fieldset>
  );
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
  const id = `jp-convect-parameter-${name}`;
  const axis = several
    ? parseAxis(type, text ?? '', form.choice.mode, form.trans)
    : null;
  const count = axis && 'value' in axis ? countOf(axis.value) : null;
  return (
    <div className="jp-ConvectRuns-field" data-parameter={name}>
      <span className="jp-ConvectRuns-label" title={help ?? name}>
        <label htmlFor={id}>{name}</label>
        {type && <span className="jp-ConvectRuns-type">{type}</span>}
      </span>
      <span className="jp-ConvectRuns-input">
        <span className="jp-ConvectRuns-inline">
          {several ? (
            <input
              id={id}
              className="jp-mod-styled"
              value={text ?? ''}
              spellCheck={false}
              aria-invalid={!!error}
              placeholder={placeholderFor(type)}
              onChange={event =>
                form.setEntry(parameter, { text: event.target.value })
              }
            />
          ) : (
            <One id={id} form={form} parameter={parameter} invalid={!!error} />
          )}
          <button
            className="jp-ConvectRuns-several"
            type="button"
            aria-pressed={several}
            aria-label={trans.__('Several values for %1', name)}
            title={trans.__('Several values: one run for each')}
            onClick={() => form.setEntry(parameter, toggled(several, text))}
          >
            {several && count ? `× ${count}` : trans.__('Sweep')}
          </button>
          {form.isChanged(parameter) && (
            <button
              className="jp-ConvectRuns-several"
              type="button"
              aria-label={trans.__('Back to the default of %1', name)}
              title={trans.__('Back to the default')}
              onClick={() => form.reset(parameter)}
            >
              ↺
            </button>
          )}
        </span>
        {error ? (
          <span className="jp-ConvectRuns-error" role="alert">
            {error}
          </span>
        ) : (
          help && <span className="jp-ConvectRuns-help">{help}</span>
        )}
      </span>
    </div>
  );
}

/** The field for a single value. */
function One(props: {
  id: string;
  form: RunForm;
  parameter: IParameter;
  invalid: boolean;
}): JSX.Element {
  const { id, form, parameter, invalid } = props;
  const { type, choices } = parameter;
  const text = form.entry(parameter).text ?? '';
  const set = (value: string) => form.setEntry(parameter, { text: value });
  if (choices.length > 0) {
    return (
      <HTMLSelect
        id={id}
        value={text}
        onChange={event => set(event.target.value)}
      >
        {choices.map(choice => (
          <option key={textOf(choice)} value={textOf(choice)}>
            {textOf(choice)}
          </option>
        ))}
      </HTMLSelect>
    );
  }
  if (type === 'boolean') {
    return (
      <input
        id={id}
        type="checkbox"
        checked={text === 'true'}
        onChange={event => set(String(event.target.checked))}
      />
    );
  }
  return (
    <input
      id={id}
      className="jp-mod-styled"
      value={text}
      spellCheck={false}
      aria-invalid={invalid}
      inputMode={type === 'number' || type === 'integer' ? 'decimal' : 'text'}
      placeholder={parameter.source ?? undefined}
      onChange={event => set(event.target.value)}
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

/** From one value to several keeps the one; back again keeps the first. */
function toggled(
  several: boolean,
  text: string | null
): { several: boolean; text: string } {
  const value = text ?? '';
  if (!several) {
    return { several: true, text: value };
  }
  const first = value.split(/,|\.\./)[0].trim();
  return { several: false, text: value.startsWith('[') ? '' : first };
}
