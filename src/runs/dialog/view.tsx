import { HTMLSelect } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { TranslationBundle } from '@jupyterlab/translation';

import type { IProblem } from '../../api';
import {
  Field,
  goalLabel,
  Section,
  runtimeLabel,
  TextField,
  translated,
  useModel,
  useTrans
} from '../../ui';
import type { IChoice } from './choice';
import type { RunForm } from './form';
import { Options } from './options';
import { Parameters } from './parameters';
import { VIEW, whereItWorks } from './workplace';

/** The form behind "Run as pipeline". */
export function RunFormView(props: { form: RunForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  return form.isLoading ? (
    <div className="jp-Convect-form" aria-busy>
      <div className="jp-ConvectRuns-hint">{trans.__('Looking at it…')}</div>
    </div>
  ) : (
    <Fields form={form} />
  );
}

function Fields({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { choice, runtime, outcome } = form;
  const place = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    place.current?.querySelector<HTMLElement>('input, select')?.focus();
  }, []);
  return (
    <div className="jp-Convect-form" ref={place}>
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
                  {runtimeLabel(trans, name, display_name)}
                  {problem && `: ${translated(problem, trans)}`}
                </option>
              ))}
            </HTMLSelect>
          )}
        </Field>
      )}
      {namesNoKernel(form) && <Kernel form={form} />}
      <Parameters form={form} />
      {outcome.sweep && <SweepChoice form={form} />}
      <Resources form={form} />
      <More form={form} />
      <div className="jp-ConvectRuns-verdict">
        <Problems
          problems={form.problems.filter(({ code }) => code !== VIEW)}
        />
        {form.failure && (
          <div
            className="jp-ConvectRuns-problem"
            data-severity="error"
            role="alert"
          >
            {translated(form.failure, trans)}
          </div>
        )}
        <Summary form={form} />
        <p className="jp-Convect-help">
          {whereItWorks(form.subject, outcome, form.problems, trans)}
          {form.subject.isAgain && ` ${trans.__('It runs today’s files.')}`}
        </p>
      </div>
    </div>
  );
}

/** Fields that are folded away until somebody wants them; `open` unfolds them. */
function Group(props: {
  title: string;
  open: boolean;
  children: React.ReactNode;
}): JSX.Element {
  const { title, open, children } = props;
  const [isOpen, setOpen] = React.useState(open);
  React.useEffect(() => setOpen(was => was || open), [open]);
  return (
    <Section title={title} isOpen={isOpen} onToggle={setOpen}>
      {children}
    </Section>
  );
}

type TextName = {
  [K in keyof IChoice]: IChoice[K] extends string ? K : never;
}[keyof IChoice];

function FormText(props: {
  form: RunForm;
  name: Exclude<TextName, 'mode' | 'goal'>;
  label: string;
  hint?: string | null;
  example?: string;
  lines?: number;
  suggestions?: readonly string[];
  invalid?: boolean;
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

/** By what the best run will be told when nobody says. */
function bestHint(form: RunForm, trans: TranslationBundle): string | null {
  const { metrics } = form;
  return (
    metrics &&
    (metrics.best
      ? goalLabel(metrics.best, trans)
      : trans.__('The metrics do not tell which run is the best. Choose one.'))
  );
}

function SweepChoice({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { choice, outcome } = form;
  const names = React.useId();
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
      <Field
        label={trans.__('Best')}
        error={outcome.errors.metric}
        hint={choice.goal === '' ? bestHint(form, trans) : null}
      >
        {input => (
          <span className="jp-ConvectRuns-inline">
            <HTMLSelect
              {...input}
              value={choice.goal}
              onChange={event =>
                form.set({ goal: event.target.value as IChoice['goal'] })
              }
            >
              <option value="">{trans.__('chosen automatically')}</option>
              <option value="none">{trans.__('not marked')}</option>
              <option value="max">{trans.__('the highest')}</option>
              <option value="min">{trans.__('the lowest')}</option>
            </HTMLSelect>
            {(choice.goal === 'max' || choice.goal === 'min') && (
              <>
                <input
                  className="jp-mod-styled"
                  aria-label={trans.__('Metric')}
                  placeholder={trans.__('Metric')}
                  list={names}
                  value={choice.metric}
                  onChange={event => form.set({ metric: event.target.value })}
                />
                <datalist id={names}>
                  {form.metrics?.names.map(name => (
                    <option key={name} value={name} />
                  ))}
                </datalist>
              </>
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

/** Said first when the notebook does not, or names one that is not there. */
function namesNoKernel(form: RunForm): boolean {
  return form.kernel === '' || form.isRefused('kernel');
}

function Kernel({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  return (
    <FormText
      form={form}
      name="kernel"
      label={trans.__('Kernel')}
      hint={
        form.kernel === '' ? trans.__('The notebook names none.') : undefined
      }
      example={form.kernel ?? ''}
      suggestions={form.kernels}
      invalid={form.isRefused('kernel')}
    />
  );
}

/** What the runtime lets one ask for, and how much of it is free; what it cannot do is not shown. */
function Resources({ form }: { form: RunForm }): JSX.Element | null {
  const trans = useTrans();
  const { free } = form;
  const { image, cpu, memory, gpu } = form.choice;
  if (!['image', 'cpu', 'memory', 'gpu'].some(name => form.has(name))) {
    return null;
  }
  return (
    <Group
      title={trans.__('Image and resources')}
      open={
        form.has('image') ||
        !!(image || cpu || memory || gpu) ||
        form.isRefused('resources')
      }
    >
      {form.has('image') && (
        <FormText
          form={form}
          name="image"
          label={trans.__('Image')}
          example="registry/image:tag"
          invalid={form.isRefused('image')}
        />
      )}
      {form.has('cpu') && (
        <FormText
          form={form}
          name="cpu"
          label={trans.__('CPU')}
          hint={free?.cpu}
          example={trans.__('cores: 2 or 500m')}
          invalid={form.isRefused('resources', 'cpu')}
        />
      )}
      {form.has('memory') && (
        <FormText
          form={form}
          name="memory"
          label={trans.__('Memory')}
          hint={free?.memory}
          example="2Gi"
          invalid={form.isRefused('resources', 'memory')}
        />
      )}
      {form.has('gpu') && (
        <FormText
          form={form}
          name="gpu"
          label={trans.__('GPUs')}
          hint={free?.gpu}
          example="0"
          invalid={form.isRefused('resources', 'gpu')}
        />
      )}
      {form.has('gpu') && form.has('kubernetes') && (
        <FormText
          form={form}
          name="gpuType"
          label={trans.__('GPU type')}
          example={free?.gpuTypes[0] ?? 'NVIDIA-A100'}
          suggestions={free?.gpuTypes}
          invalid={form.isRefused('resources', 'gpu', 'type')}
        />
      )}
    </Group>
  );
}

/** What stands under "More": it is unfolded when something in it has to be mended. */
const MORE = [
  'env',
  'secrets',
  'dependencies',
  'outputs',
  'retries',
  'timeout'
];

function More({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { runtime, outcome } = form;
  const options = runtime?.options_schema.properties ?? {};
  return (
    <Group
      title={trans.__('More')}
      open={MORE.some(name => name in outcome.errors || form.isRefused(name))}
    >
      <FormText
        form={form}
        name="name"
        label={trans.__('Name')}
        example={form.subject.title}
      />
      {form.kernel !== null && !namesNoKernel(form) && <Kernel form={form} />}
      <FormText
        form={form}
        name="env"
        lines={2}
        label={trans.__('Environment variables')}
        example="NAME=value"
        invalid={form.isRefused('env')}
      />
      {form.has('secrets') && (
        <FormText
          form={form}
          name="secrets"
          lines={2}
          label={trans.__('Secrets')}
          example="NAME=secret/key"
          invalid={form.isRefused('secrets')}
        />
      )}
      <FormText
        form={form}
        name="dependencies"
        lines={2}
        label={trans.__('Files it needs')}
        example="data/*.csv"
        invalid={form.isRefused('dependencies')}
      />
      <FormText
        form={form}
        name="outputs"
        lines={2}
        label={trans.__('Files to keep')}
        example="results/*.parquet"
        invalid={form.isRefused('outputs')}
      />
      <WorkingFolder form={form} />
      <FormText
        form={form}
        name="retries"
        label={trans.__('Retries')}
        example="0"
        invalid={form.isRefused('retries')}
      />
      <FormText
        form={form}
        name="timeout"
        label={trans.__('Timeout')}
        example="2h"
        invalid={form.isRefused('timeout')}
      />
      {Object.keys(options).length > 0 && <Options form={form} />}
    </Group>
  );
}

function WorkingFolder({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { workingFolder } = form.choice;
  const choices: [string, string][] = [
    [
      '',
      form.isPipeline
        ? trans.__('as the pipeline says')
        : trans.__('its own copy of the folder')
    ],
    ['shared', trans.__('the folder itself, with other runs')],
    ['isolated', trans.__('an empty folder')]
  ];
  if (!choices.some(([value]) => value === workingFolder)) {
    choices.push([workingFolder, workingFolder]);
  }
  return (
    <Field label={trans.__('Works in')}>
      {input => (
        <HTMLSelect
          {...input}
          value={workingFolder}
          onChange={event => form.set({ workingFolder: event.target.value })}
        >
          {choices.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </HTMLSelect>
      )}
    </Field>
  );
}

export function Problems(props: {
  problems: readonly IProblem[];
}): JSX.Element | null {
  const trans = useTrans();
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
          {translated(problem.message, trans)}
          {problem.hint && ` ${translated(problem.hint, trans)}`}
        </li>
      ))}
    </ul>
  );
}

/** What pressing Run will do. */
function Summary({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { size, sweep } = form.outcome;
  const where = runtimeLabel(
    trans,
    form.choice.runtime,
    form.runtime?.display_name
  );
  return (
    <p className="jp-ConvectRuns-summary" role="status">
      {sweep
        ? trans._n('%1 run on %2', '%1 runs on %2', size, where)
        : trans.__('One run on %1. The source is not changed.', where)}
    </p>
  );
}
