import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';
import * as React from 'react';

import type { Axis, IMetrics, IParameter, ParameterType } from '../api';
import {
  Field,
  goalLabel,
  Select,
  TextField,
  TextInput,
  useTrans
} from '../ui';
import type { IParameterForm } from './parameters';
import type { Parsed } from './parametervalues';
import {
  looksLikeSeveral,
  parseAxis,
  parseValue,
  sizeOf,
  textOf
} from './parametervalues';

/** One parameter as it stands in a form; null stands for the default. */
export interface IEntry {
  text: string | null;
  several: boolean;
}

export type IEntries = Readonly<Record<string, IEntry>>;

/** How to go through the values of a sweep. */
export interface ISweepChoice {
  mode: 'grid' | 'random' | 'list';
  samples: string;
  concurrency: string;
  /** Empty: by itself, where that is plain. */
  goal: '' | 'none' | 'max' | 'min';
  metric: string;
}

export const EMPTY_SWEEP: ISweepChoice = {
  mode: 'grid',
  samples: '10',
  concurrency: '',
  goal: '',
  metric: ''
};

/** What stands in the field of a parameter. */
export function entryOf(entries: IEntries, parameter: IParameter): IEntry {
  const entry = entries[parameter.name];
  const text = entry?.text ?? textOf(parameter.default);
  return { text, several: entry?.several ?? false };
}

/** What is to stand there after a change. */
export function changedEntry(
  entries: IEntries,
  parameter: IParameter,
  change: Partial<IEntry>
): IEntry {
  const entry = { ...entryOf(entries, parameter), ...change };
  if (
    change.text !== undefined &&
    looksLikeSeveral(parameter.type, entry.text ?? '')
  ) {
    entry.several = true;
  }
  const unchanged = !entry.several && entry.text === textOf(parameter.default);
  return unchanged && !parameter.required ? { ...entry, text: null } : entry;
}

/** The entries with another one for a parameter; null takes its own away. */
export function withEntry(
  entries: IEntries,
  name: string,
  entry: IEntry | null
): IEntries {
  const own: Record<string, IEntry> = { ...entries };
  if (entry) {
    own[name] = entry;
  } else {
    delete own[name];
  }
  return own;
}

export function isChanged(entries: IEntries, { name }: IParameter): boolean {
  return (entries[name]?.text ?? null) !== null;
}

/** The values of a parameter that has several. */
export function axisOf(
  type: ParameterType | null,
  { text }: IEntry,
  { mode }: Pick<ISweepChoice, 'mode'>,
  trans: TranslationBundle,
  canRefer = false
): Parsed<Axis> {
  // What a reference stands for has its type later.
  const known = canRefer && isReference(text ?? '') ? null : type;
  return parseAxis(known, text ?? '', mode === 'random' ? mode : 'grid', trans);
}

function isReference(text: string): boolean {
  return text.includes('${{');
}

/** What the fields of parameters say. */
export interface IGiven {
  values: JSONObject;
  space: Record<string, Axis>;
  errors: Record<string, string>;
}

/** Read the fields; where a value can refer to something, what does is kept as it is. */
export function readEntries(
  parameters: readonly IParameter[],
  entries: IEntries,
  choice: Pick<ISweepChoice, 'mode'>,
  trans: TranslationBundle,
  canRefer = false
): IGiven {
  const given: IGiven = { values: {}, space: {}, errors: {} };
  for (const { name, type, required } of parameters) {
    const entry = entries[name];
    const text = entry?.text ?? null;
    if (text === null) {
      if (required) {
        given.errors[`parameter ${name}`] = trans.__(
          'It has no default: give one.'
        );
      }
    } else if (entry.several) {
      const axis = axisOf(type, entry, choice, trans, canRefer);
      if ('error' in axis) {
        given.errors[`parameter ${name}`] = axis.error;
      } else {
        given.space[name] = axis.value;
      }
    } else if (canRefer && isReference(text)) {
      given.values[name] = text;
    } else {
      const value = parseValue(type, text, trans);
      if ('error' in value) {
        given.errors[`parameter ${name}`] = value.error;
      } else {
        given.values[name] = value.value;
      }
    }
  }
  return given;
}

/** A sweep as it is asked for. */
export interface ISweepGiven {
  space: Record<string, Axis>;
  mode: ISweepChoice['mode'];
  samples?: number;
  concurrency?: number;
  select?: string;
}

/** The sweep over a space; null when nothing has several values. What is wrong is added to `errors`. */
export function sweepOf(
  { space, errors }: Pick<IGiven, 'space' | 'errors'>,
  choice: ISweepChoice,
  trans: TranslationBundle,
  metrics: IMetrics | null = null
): ISweepGiven | null {
  if (Object.keys(space).length === 0) {
    return null;
  }
  const isRandom = choice.mode === 'random';
  const whole = (field: 'samples' | 'concurrency') => {
    const text = choice[field].trim();
    const value = Number(text);
    if (text && !(Number.isInteger(value) && value >= 1)) {
      errors[field] = trans.__('Give a whole number of at least %1.', 1);
      return null;
    }
    return text ? value : null;
  };
  const [samples, concurrency] = [whole('samples'), whole('concurrency')];
  const select = selectOf(choice, metrics, errors, trans);
  return {
    space,
    mode: choice.mode,
    ...(isRandom && samples !== null ? { samples } : {}),
    ...(concurrency !== null ? { concurrency } : {}),
    ...(select ? { select } : {})
  };
}

/** How many runs a sweep makes. */
export function countOfRuns({ space, mode, samples }: ISweepGiven): number {
  const axes = Object.values(space);
  return mode === 'random'
    ? (samples ?? 1)
    : sizeOf(mode === 'list' ? axes.slice(0, 1) : axes);
}

/** Which run is to be marked as the best; null leaves that to the server. */
function selectOf(
  { goal, metric }: ISweepChoice,
  metrics: IMetrics | null,
  errors: Record<string, string>,
  trans: TranslationBundle
): string | null {
  const name = metric.trim();
  if (goal === '' || goal === 'none') {
    return goal || null;
  }
  if (!name) {
    errors.metric = trans.__('Name the metric.');
  } else if (metrics?.complete && !metrics.names.includes(name)) {
    errors.metric =
      metrics.names.length > 0
        ? trans.__('It reports no %1, but %2.', name, metrics.names.join(', '))
        : trans.__('It reports no metric.');
  }
  return `${goal}:${name}`;
}

/** By what the best run will be told when nobody says. */
function bestHint(
  metrics: IMetrics | null,
  trans: TranslationBundle
): string | null {
  return (
    metrics &&
    (metrics.best
      ? goalLabel(metrics.best, trans)
      : trans.__('The metrics do not say which run is best. Choose one.'))
  );
}

/** How the values are combined, and which run is the best. */
export function SweepFields(props: {
  form: IParameterForm;
  metrics: IMetrics | null;
}): JSX.Element {
  const { form, metrics } = props;
  const trans = useTrans();
  const { sweepChoice: choice, errors } = form;
  const text = (
    name: 'samples' | 'concurrency',
    label: string,
    example?: string
  ) => (
    <TextField
      label={label}
      example={example}
      value={choice[name]}
      error={errors[name]}
      onChange={value => form.setSweepChoice({ [name]: value })}
    />
  );
  return (
    <fieldset className="jp-Convect-group">
      <legend>{trans.__('Sweep')}</legend>
      <Field label={trans.__('Points')}>
        <Select
          value={choice.mode}
          options={[
            { value: 'grid', label: trans.__('All combinations') },
            { value: 'random', label: trans.__('Random samples') },
            // It is asked for elsewhere, and kept.
            ...(choice.mode === 'list'
              ? [{ value: 'list', label: trans.__('Values side by side') }]
              : [])
          ]}
          onChange={mode =>
            form.setSweepChoice({ mode: mode as ISweepChoice['mode'] })
          }
        />
      </Field>
      {choice.mode === 'random' && text('samples', trans.__('Samples'))}
      <Field
        label={trans.__('Best')}
        error={errors.metric}
        hint={choice.goal === '' ? bestHint(metrics, trans) : null}
      >
        <span className="jp-Convect-inline">
          <Select
            value={choice.goal}
            options={[
              { value: '', label: trans.__('chosen automatically') },
              { value: 'none', label: trans.__('not marked') },
              { value: 'max', label: trans.__('the highest') },
              { value: 'min', label: trans.__('the lowest') }
            ]}
            onChange={goal =>
              form.setSweepChoice({ goal: goal as ISweepChoice['goal'] })
            }
          />
          {(choice.goal === 'max' || choice.goal === 'min') && (
            <TextInput
              label={trans.__('Metric')}
              placeholder={trans.__('Metric')}
              list={metrics?.names}
              value={choice.metric}
              onChange={metric => form.setSweepChoice({ metric })}
            />
          )}
        </span>
      </Field>
      {text('concurrency', trans.__('At once'), trans.__('as many as fit'))}
    </fieldset>
  );
}
