import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IProblem } from '../../api';
import { useModel, useTrans } from '../../ui';
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
      <div className="jp-ConvectRuns-form" aria-busy>
        <div className="jp-ConvectRuns-hint">{trans.__('Looking at it…')}</div>
      </div>
    );
  }
  return (
    <div className="jp-ConvectRuns-form">
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
          <HTMLSelect
            value={choice.runtime}
            aria-label={trans.__('Where')}
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

/** A label above or beside what it names, and what is wrong with it below. */
export function Field(props: {
  label: string;
  hint?: string;
  error?: string;
  children: React.ReactNode;
}): JSX.Element {
  const { label, hint, error, children } = props;
  return (
    <label className="jp-ConvectRuns-field">
      <span className="jp-ConvectRuns-label" title={hint}>
        {label}
      </span>
      <span className="jp-ConvectRuns-input">
        {children}
        {error ? (
          <span className="jp-ConvectRuns-error" role="alert">
            {error}
          </span>
        ) : (
          hint && <span className="jp-ConvectRuns-help">{hint}</span>
        )}
      </span>
    </label>
  );
}

type TextName = {
  [K in keyof IChoice]: IChoice[K] extends string ? K : never;
}[keyof IChoice];

function TextField(props: {
  form: RunForm;
  name: Exclude<TextName, 'mode' | 'goal'>;
  label: string;
  hint?: string;
  example?: string;
  lines?: number;
}): JSX.Element {
  const { form, name, label, hint, example, lines } = props;
  const common = {
    className: 'jp-mod-styled',
    value: form.choice[name],
    placeholder: example,
    spellCheck: false,
    'aria-invalid': name in form.outcome.errors,
    onChange: (
      event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>
    ) => form.set({ [name]: event.target.value })
  };
  return (
    <Field label={label} hint={hint} error={form.outcome.errors[name]}>
      {lines ? <textarea rows={lines} {...common} /> : <input {...common} />}
    </Field>
  );
}

function SweepChoice({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { choice } = form;
  return (
    <fieldset className="jp-ConvectRuns-group">
      <legend>{trans.__('Sweep')}</legend>
      <Field label={trans.__('Points')}>
        <HTMLSelect
          value={choice.mode}
          aria-label={trans.__('Points')}
          onChange={event =>
            form.set({ mode: event.target.value as IChoice['mode'] })
          }
        >
          <option value="grid">{trans.__('All combinations')}</option>
          <option value="random">{trans.__('Random samples')}</option>
        </HTMLSelect>
      </Field>
      {choice.mode === 'random' && (
        <TextField form={form} name="samples" label={trans.__('Samples')} />
      )}
      <Field label={trans.__('Best')}>
        <span className="jp-ConvectRuns-inline">
          <HTMLSelect
            value={choice.goal}
            aria-label={trans.__('Best')}
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
      </Field>
      <TextField
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
      className="jp-ConvectRuns-group"
      open={!!asked || form.has('image') || undefined}
    >
      <summary>{trans.__('Image and resources')}</summary>
      {form.has('image') && (
        <TextField
          form={form}
          name="image"
          label={trans.__('Image')}
          example="registry/image:tag"
        />
      )}
      {form.has('cpu') && (
        <TextField
          form={form}
          name="cpu"
          label={trans.__('CPU')}
          example={trans.__('cores: 2 or 500m')}
        />
      )}
      {form.has('memory') && (
        <TextField
          form={form}
          name="memory"
          label={trans.__('Memory')}
          example="2Gi"
        />
      )}
      {form.has('gpu') && (
        <TextField
          form={form}
          name="gpu"
          label={trans.__('GPUs')}
          example="0"
        />
      )}
      {form.has('gpu') && form.has('kubernetes') && (
        <TextField
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
    <details className="jp-ConvectRuns-group">
      <summary>{trans.__('More')}</summary>
      <TextField
        form={form}
        name="name"
        label={trans.__('Name')}
        example={form.subject.title}
      />
      {form.kernel !== null && (
        <TextField
          form={form}
          name="kernel"
          label={trans.__('Kernel')}
          example={form.kernel}
        />
      )}
      <TextField
        form={form}
        name="env"
        lines={2}
        label={trans.__('Environment variables')}
        example="NAME=value"
      />
      {form.has('secrets') && (
        <TextField
          form={form}
          name="secrets"
          lines={2}
          label={trans.__('Secrets')}
          example="NAME=secret/key"
        />
      )}
      <TextField
        form={form}
        name="dependencies"
        lines={2}
        label={trans.__('Files it needs')}
        example="data/*.csv"
      />
      <TextField
        form={form}
        name="outputs"
        lines={2}
        label={trans.__('Files to keep')}
        example="results/*.parquet"
      />
      <TextField
        form={form}
        name="retries"
        label={trans.__('Retries')}
        example="0"
      />
      <TextField
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
