import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IProblem } from '../../api';
import { Field, TextField, useModel, useTrans } from '../../ui';
import type { IChoice } from './choice';
import type { RunForm } from './form';
import { Options } from './options';
import { Parameters } from './parameters';

/** The form behind "Run as pipeline". */
export function RunFormView(props: { form: RunForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  const { choice, runtime, outcome } = form;
  if (form.isLoading) {
    return (
      <div className="jp-Convect-form" aria-busy>
        <div className="jp-ConvectRuns-hint">{trans.__('Looking at it…')}</div>
      </div>
    );
  }
  return (
    <div className="jp-Convect-form">
      {form.hasUnsavedChanges && (
        <label className="jp-ConvectRuns-banner">
          <input
            type="checkbox"
            checked={form.savesFirst}
            onChange={event => (form.savesFirst = event.target.checked)}
          />
          {trans.__('Save the unsaved changes first')}
        </label>
      )}
      {form.runtimes.length > 1 && (
        <Field label={trans.__('Where')} error={runtime?.problem ?? undefined}>
          {input => (
            <HTMLSelect
              {...input}
              value={choice.runtime}
              onChange={event =>
                form.set({ runtime: event.target.value, options: {} })
              }
            >
              {form.runtimes.map(({ name, display_name, problem }) => (
                <option key={name} value={name} disabled={!!problem}>
                  {problem ? `${display_name}: ${problem}` : display_name}
                </option>
              ))}
            </HTMLSelect>
          )}
        </Field>
      )}
      <Parameters form={form} />
      {outcome.sweep && <SweepChoice form={form} />}
      <Resources form={form} />
      <More form={form} />
      <Problems problems={form.problems} />
      {form.failure && (
        <div
          className="jp-ConvectRuns-problem"
          data-severity="error"
          role="alert"
        >
          {form.failure}
        </div>
      )}
      <Summary form={form} />
    </div>
  );
}

type TextName = {
  [K in keyof IChoice]: IChoice[K] extends string ? K : never;
}[keyof IChoice];

function FormText(props: {
  form: RunForm;
  name: Exclude<TextName, 'mode' | 'goal'>;
  label: string;
  hint?: string;
  example?: string;
  lines?: number;
}): JSX.Element {
  const { form, name, ...field } = props;
  return (
    <TextField
      {...field}
      value={form.choice[name]}
      error={form.outcome.errors[name]}
      onChange={value => form.set({ [name]: value })}
    />
  );
}

function SweepChoice({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { choice } = form;
  return (
    <fieldset className="jp-Convect-group">
      <legend>{trans.__('Sweep')}</legend>
      <Field label={trans.__('Points')}>
        {input => (
          <HTMLSelect
            {...input}
            value={choice.mode}
            onChange={event =>
              form.set({ mode: event.target.value as IChoice['mode'] })
            }
          >
            <option value="grid">{trans.__('All combinations')}</option>
            <option value="random">{trans.__('Random samples')}</option>
          </HTMLSelect>
        )}
      </Field>
      {choice.mode === 'random' && (
        <FormText form={form} name="samples" label={trans.__('Samples')} />
      )}
      <Field label={trans.__('Best')}>
        {input => (
          <span className="jp-ConvectRuns-inline">
            <HTMLSelect
              {...input}
              value={choice.goal}
              onChange={event =>
                form.set({ goal: event.target.value as IChoice['goal'] })
              }
            >
              <option value="">{trans.__('not marked')}</option>
              <option value="max">{trans.__('the highest')}</option>
              <option value="min">{trans.__('the lowest')}</option>
            </HTMLSelect>
            {choice.goal && (
              <input
                className="jp-mod-styled"
                aria-label={trans.__('Metric')}
                placeholder={trans.__('Metric')}
                value={choice.metric}
                onChange={event => form.set({ metric: event.target.value })}
              />
            )}
          </span>
        )}
      </Field>
      <FormText
        form={form}
        name="concurrency"
        label={trans.__('At once')}
        example={trans.__('as many as fit')}
      />
    </fieldset>
  );
}

/** What the runtime lets one ask for; what it cannot do is not shown. */
function Resources({ form }: { form: RunForm }): JSX.Element | null {
  const trans = useTrans();
  const shown = ['image', 'cpu', 'memory', 'gpu'].filter(name =>
    form.has(name)
  );
  const asked =
    form.choice.image ||
    form.choice.cpu ||
    form.choice.memory ||
    form.choice.gpu;
  if (shown.length === 0) {
    return null;
  }
  return (
    <details
      className="jp-Convect-group"
      open={!!asked || form.has('image') || undefined}
    >
      <summary>{trans.__('Image and resources')}</summary>
      {form.has('image') && (
        <FormText
          form={form}
          name="image"
          label={trans.__('Image')}
          example="registry/image:tag"
        />
      )}
      {form.has('cpu') && (
        <FormText
          form={form}
          name="cpu"
          label={trans.__('CPU')}
          example={trans.__('cores: 2 or 500m')}
        />
      )}
      {form.has('memory') && (
        <FormText
          form={form}
          name="memory"
          label={trans.__('Memory')}
          example="2Gi"
        />
      )}
      {form.has('gpu') && (
        <FormText form={form} name="gpu" label={trans.__('GPUs')} example="0" />
      )}
      {form.has('gpu') && form.has('kubernetes') && (
        <FormText
          form={form}
          name="gpuType"
          label={trans.__('GPU type')}
          example="NVIDIA-A100"
        />
      )}
    </details>
  );
}

function More({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { runtime } = form;
  const options = runtime?.options_schema.properties ?? {};
  return (
    <details className="jp-Convect-group">
      <summary>{trans.__('More')}</summary>
      <FormText
        form={form}
        name="name"
        label={trans.__('Name')}
        example={form.subject.title}
      />
      {form.kernel !== null && (
        <FormText
          form={form}
          name="kernel"
          label={trans.__('Kernel')}
          example={form.kernel}
        />
      )}
      <FormText
        form={form}
        name="env"
        lines={2}
        label={trans.__('Environment variables')}
        example="NAME=value"
      />
      {form.has('secrets') && (
        <FormText
          form={form}
          name="secrets"
          lines={2}
          label={trans.__('Secrets')}
          example="NAME=secret/key"
        />
      )}
      <FormText
        form={form}
        name="dependencies"
        lines={2}
        label={trans.__('Files it needs')}
        example="data/*.csv"
      />
      <FormText
        form={form}
        name="outputs"
        lines={2}
        label={trans.__('Files to keep')}
        example="results/*.parquet"
      />
      <FormText
        form={form}
        name="retries"
        label={trans.__('Retries')}
        example="0"
      />
      <FormText
        form={form}
        name="timeout"
        label={trans.__('Timeout')}
        example="2h"
      />
      {Object.keys(options).length > 0 && <Options form={form} />}
    </details>
  );
}

export function Problems(props: {
  problems: readonly IProblem[];
}): JSX.Element | null {
  if (props.problems.length === 0) {
    return null;
  }
  return (
    <ul className="jp-ConvectRuns-problems" role="status">
      {props.problems.map((problem, index) => (
        <li
          key={index}
          className="jp-ConvectRuns-problem"
          data-severity={problem.severity}
        >
          {problem.message}
          {problem.hint && ` ${problem.hint}`}
        </li>
      ))}
    </ul>
  );
}

/** What pressing Run will do. */
function Summary({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { size, sweep } = form.outcome;
  const where = form.runtime?.display_name ?? form.choice.runtime;
  return (
    <p className="jp-ConvectRuns-summary" role="status">
      {sweep
        ? trans._n('%1 run on %2', '%1 runs on %2', size, where)
        : trans.__('One run on %1. The source is not changed.', where)}
    </p>
  );
}
