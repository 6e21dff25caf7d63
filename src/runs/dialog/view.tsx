import { PathExt } from '@jupyterlab/coreutils';
import { caretUpIcon } from '@jupyterlab/ui-components';
import type { JSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IProblem } from '../../api';
import { Approval } from '../../catalog/approval';
import type { IFormContext } from '../../settings';
import { Form, FormProvider, PairList } from '../../settings';
import { SweepFields } from '../../settings/sweepchoice';
import {
  CheckBox,
  Failure,
  Field,
  IconButton,
  isObject,
  runtimeLabel,
  Section,
  Select,
  TextField,
  translated,
  useModel,
  useTrans
} from '../../ui';
import { Connection } from './connection';
import { unapproved } from './document';
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
      <div className="jp-Convect-hint">{trans.__('Looking at it…')}</div>
    </div>
  ) : (
    <Fields form={form} />
  );
}

function Fields({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { choice, runtime, outcome } = form;
  const place = React.useRef<HTMLDivElement>(null);
  React.useLayoutEffect(() => {
    place.current?.querySelector<HTMLElement>('input, select')?.focus();
  }, []);
  return (
    <div className="jp-Convect-form" ref={place}>
      {form.hasUnsavedChanges && (
        <label className="jp-Convect-message" data-severity="warning">
          <input
            type="checkbox"
            checked={form.savesFirst}
            onChange={event => (form.savesFirst = event.target.checked)}
          />
          {trans.__(
            'Save the unsaved changes first: %1',
            form.unsavedNames.join(', ')
          )}
        </label>
      )}
      {form.subject.notes?.map(note => (
        <div className="jp-Convect-message" data-severity="info" key={note}>
          {note}
        </div>
      ))}
      {form.runtimes.length > 1 && (
        <Field label={trans.__('Where')} error={runtime?.problem ?? undefined}>
          <Select
            value={choice.runtime}
            options={form.runtimes.map(({ name, display_name, problem }) => ({
              value: name,
              label: [
                runtimeLabel(trans, name, display_name),
                ...(problem ? [translated(problem, trans)] : [])
              ].join(': '),
              disabled: !!problem
            }))}
            onChange={next => form.set({ runtime: next, options: {} })}
          />
        </Field>
      )}
      {form.has('connection') && (
        <Connection key={choice.runtime} form={form} />
      )}
      <Files form={form} />
      <Parameters form={form} />
      {outcome.sweep && <SweepFields form={form} metrics={form.metrics} />}
      <Settings form={form} />
      <More form={form} />
      <div className="jp-Convect-verdict">
        <Problems form={form} />
        <Failure error={form.failure} />
        <Summary form={form} />
        <p className="jp-Convect-help">
          {whereItWorks(form.subject, outcome, form.problems, trans)}
          {form.subject.isAgain && ` ${trans.__('It runs today’s files.')}`}
        </p>
      </div>
    </div>
  );
}

/** Settings that only some runtimes have, by the feature that says so. */
const FEATURES: { readonly [setting: string]: string } = {
  image: 'image',
  pull_policy: 'image',
  secrets: 'secrets',
  volumes: 'volumes',
  kubernetes: 'kubernetes',
  distributed: 'distributed',
  dask: 'dask',
  cpu: 'cpu',
  memory: 'memory',
  gpu: 'gpu',
  shared_memory: 'shared_memory',
  ephemeral_storage: 'ephemeral_storage'
};

/**
 * The settings of the document for this run, in the form that the properties of a
 * pipeline have. What the runtime cannot do is not shown, unless it is set.
 */
function Settings({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { settings } = form.choice;
  const { free } = form;
  const isScript = form.kernel === null && !form.isPipeline;
  const isShown = (name: string, value: JSONValue | undefined) =>
    value !== undefined || !(name in FEATURES) || form.has(FEATURES[name]);
  const hints: { [path: string]: string | null | undefined } = {
    'resources.cpu': free?.cpu,
    'resources.memory': free?.memory,
    'resources.gpu': free?.gpu,
    kernel: form.kernel === '' ? trans.__('The notebook names none.') : null
  };
  const resources = isObject(settings.resources) ? settings.resources : {};
  const context: IFormContext = {
    trans,
    isReadOnly: false,
    isFolded: true,
    isMixed: () => false,
    // They are listed below the form, for those of its nodes as well.
    marksOnly: true,
    problems: form.problems,
    openSections: form.openSections,
    images: form.images,
    offering: form.offering,
    kernels: form.kernels,
    gpuTypes: free?.gpuTypes,
    isShown: path =>
      path[0] !== 'resources' || isShown(path[1], resources[path[1]]),
    hint: path => hints[path.join('.')] ?? null,
    set: (path, value) => form.setSetting(path, value)
  };
  return (
    <FormProvider value={context}>
      <Form
        definition="settings"
        value={settings}
        inherited={form.defaults}
        isShown={name =>
          !(name === 'kernel' && isScript) && isShown(name, settings[name])
        }
      />
    </FormProvider>
  );
}

/** What belongs to the run and not to its nodes. */
function More({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { runtime, choice } = form;
  const { name, labels, useCache, options } = choice;
  const schema = runtime?.options_schema.properties ?? {};
  const filled = [name, ...Object.keys(labels), ...Object.keys(options)];
  const count = filled.filter(Boolean).length + (useCache ? 0 : 1);
  const [isOpen, setOpen] = React.useState(count > 0);
  return (
    <Section
      title={trans.__('The run')}
      isOpen={isOpen}
      count={count}
      onToggle={setOpen}
    >
      <TextField
        label={trans.__('Name')}
        example={form.subject.title}
        value={name}
        onChange={next => form.set({ name: next })}
      />
      <Field label={trans.__('Labels')} isGroup>
        <PairList
          label={trans.__('Labels')}
          values={labels}
          onChange={next => form.set({ labels: next ?? {} })}
        />
      </Field>
      <Field
        label={trans.__('Allow reuse')}
        hint={trans.__('Of nodes that allow it and have not changed.')}
      >
        <CheckBox
          checked={useCache}
          onChange={next => form.set({ useCache: next })}
        />
      </Field>
      {Object.keys(schema).length > 0 && <Options form={form} />}
    </Section>
  );
}

/** The files that run together, in which order. */
function Files({ form }: { form: RunForm }): JSX.Element | null {
  const trans = useTrans();
  const { files } = form;
  if (!files) {
    return null;
  }
  return (
    <fieldset className="jp-Convect-group">
      <legend>{trans.__('Files')}</legend>
      <ol className="jp-Convect-fileNames">
        {files.paths.map((path, index) => (
          <li key={path}>
            <span title={path}>{PathExt.basename(path)}</span>
            {index > 0 && (
              <IconButton
                icon={caretUpIcon}
                label={trans.__('Move %1 up', PathExt.basename(path))}
                onClick={() => form.moveFile(index)}
              />
            )}
          </li>
        ))}
      </ol>
      <Field label={trans.__('Order')}>
        <Select
          value={files.isChain ? 'chain' : 'together'}
          options={[
            { value: 'chain', label: trans.__('One after the other') },
            { value: 'together', label: trans.__('All at once') }
          ]}
          onChange={order => form.setFiles({ isChain: order === 'chain' })}
        />
      </Field>
    </fieldset>
  );
}

/** What does not fit; a component that waits for an approval can be given it here. */
function ProblemText(props: { form: RunForm; problem: IProblem }): JSX.Element {
  const { form, problem } = props;
  const trans = useTrans();
  const definition = unapproved(form.subject, problem);
  const [isShown, setShown] = React.useState(false);
  if (!definition) {
    return (
      <>
        {translated(problem.message, trans)}
        {problem.hint && ` ${translated(problem.hint, trans)}`}
      </>
    );
  }
  return (
    <>
      {trans.__(
        '“%1” has not been approved to run without a container.',
        String(definition.name)
      )}{' '}
      <button
        type="button"
        className="jp-Convect-link"
        aria-expanded={isShown}
        onClick={() => setShown(!isShown)}
      >
        {trans.__('Read what it runs')}
      </button>
      {isShown && (
        <>
          <Approval definition={definition} trans={trans} />
          <button
            type="button"
            className="jp-mod-styled jp-mod-warn"
            onClick={() => void form.approve(definition)}
          >
            {trans.__('Approve')}
          </button>
        </>
      )}
    </>
  );
}

function Problems({ form }: { form: RunForm }): JSX.Element | null {
  const problems = form.problems.filter(({ code }) => code !== VIEW);
  if (problems.length === 0) {
    return null;
  }
  return (
    <div role="status">
      <ul className="jp-Convect-messages">
        {problems.map((problem, index) => (
          <li
            key={index}
            className="jp-Convect-message"
            data-severity={problem.severity}
          >
            <ProblemText form={form} problem={problem} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What pressing Run will do. */
function Summary({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { size, sweep } = form.outcome;
  const { runtime } = form.choice;
  const where =
    runtime === 'local'
      ? trans.__('this machine')
      : runtimeLabel(trans, runtime, form.runtime?.display_name);
  return (
    <p className="jp-Convect-summary" role="status">
      {sweep
        ? trans._n('%1 run on %2', '%1 runs on %2', size, where)
        : trans.__('One run on %1. The source is not changed.', where)}
    </p>
  );
}
