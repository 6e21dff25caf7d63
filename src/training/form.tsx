import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';
import * as React from 'react';

import type { ITrainingField, ITrainingJob } from '../api';
import { Field, isObject, Select, TextInput, useDraft, useTrans } from '../ui';
import { argumentsText, valueOf } from './values';
import type { TrainingModel } from './model';

/** What people change most in a training job; each change is written into its text. */
export function TrainingForm(props: {
  job: ITrainingJob;
  model: TrainingModel;
}): JSX.Element {
  const { job, model } = props;
  const trans = useTrans();
  return (
    <form
      className="jp-Convect-trainingForm"
      aria-label={trans.__('Training job')}
      onSubmit={event => event.preventDefault()}
    >
      <Profiles job={job} model={model} />
      {job.fields.map(field => (
        <FormField
          key={[field.name, ...field.roles].join()}
          field={field}
          hasRoles={job.fields.some(
            ({ name, roles }) => name === field.name && roles !== field.roles
          )}
          model={model}
        />
      ))}
    </form>
  );
}

/** Fields of the form that a profile fills in, by the names that profiles have for them. */
const FILLED = {
  image: (settings: JSONObject) => settings.image,
  cpu: ({ resources }: JSONObject) => isObject(resources) && resources.cpu,
  memory: ({ resources }: JSONObject) =>
    isObject(resources) && resources.memory,
  gpu: ({ resources }: JSONObject) => {
    const gpu = isObject(resources) && resources.gpu;
    return isObject(gpu) ? gpu.count : gpu;
  }
};

/** A size to choose instead of numbers, which it writes into all roles of the job. */
function Profiles(props: {
  job: ITrainingJob;
  model: TrainingModel;
}): JSX.Element | null {
  const { job, model } = props;
  const trans = useTrans();
  const profiles = model.offering?.profiles ?? [];
  if (profiles.length === 0) {
    return null;
  }
  return (
    <Field
      label={trans.__('Profile')}
      hint={trans.__('Fills in image, CPU, memory and GPUs.')}
    >
      <Select
        value=""
        options={[
          { value: '', label: trans.__('none') },
          ...profiles.map(({ name }) => ({ value: name, label: name }))
        ]}
        onChange={name => {
          const chosen = profiles.find(profile => profile.name === name);
          if (chosen) {
            void fillIn(job, model, chosen.settings);
          }
        }}
      />
    </Field>
  );
}

/** One after the other: each change is made to the text of the one before. */
async function fillIn(
  job: ITrainingJob,
  model: TrainingModel,
  settings: JSONObject
): Promise<void> {
  for (const [name, valueIn] of Object.entries(FILLED)) {
    const value = valueIn(settings);
    for (const field of job.fields.filter(each => each.name === name)) {
      if (value !== undefined && value !== false) {
        await model.change(
          field,
          field.kind === 'whole' ? Number(value) : String(value)
        );
      }
    }
  }
}

function FormField(props: {
  field: ITrainingField;
  /** Other roles have another value. */
  hasRoles: boolean;
  model: TrainingModel;
}): JSX.Element {
  const { field, hasRoles, model } = props;
  const trans = useTrans();
  const images = model.offering?.images.map(({ image }) => image);
  const [error, setError] = React.useState<string | null>(null);
  const known = String(field.value ?? '');
  // What was written counts until the text was looked at again: an answer
  // that comes later than the next letter must not take it away.
  const [written, setWritten] = React.useState<string | null>(null);
  React.useLayoutEffect(() => setWritten(null), [known]);
  const name = labelOf(field, trans);
  const label =
    field.roles.length > 0 && (hasRoles || field.name === 'replicas')
      ? `${name} (${field.roles.join(', ')})`
      : name;
  const write = (text: string) => {
    const value = valueOf(field.kind, text);
    setError(value === undefined ? trans.__('Enter a whole number.') : null);
    if (value !== undefined) {
      setWritten(text);
      void model.change(field, value).then(() => {
        if (model.failure !== null) {
          setWritten(null);
        }
      });
    }
  };
  return (
    <Field label={label} error={error}>
      {input => {
        switch (field.kind) {
          case 'choice':
            return (
              <Select
                value={known}
                options={['', ...field.choices].map(value => ({
                  value,
                  label: value || trans.__('as the operator decides')
                }))}
                onChange={write}
              />
            );
          case 'list':
            return (
              <Lines
                input={input}
                value={argumentsText(field.value)}
                onChange={write}
              />
            );
          default:
            return (
              <TextInput
                isLazy
                value={written ?? known}
                list={field.name === 'image' ? images : undefined}
                onChange={write}
              />
            );
        }
      }}
    </Field>
  );
}

/** A text of several lines that is written when the field is left. */
function Lines(props: {
  input: object;
  value: string;
  onChange: (text: string) => void;
}): JSX.Element {
  const { input, value, onChange } = props;
  const [draft, setDraft] = useDraft(value);
  const text = draft ?? value;
  return (
    <textarea
      {...input}
      className="jp-mod-styled"
      rows={Math.min(4, Math.max(1, text.split('\n').length))}
      placeholder={useTrans().__('one in each line')}
      spellCheck={false}
      value={text}
      onChange={event => setDraft(event.target.value)}
      onBlur={() => {
        if (text !== value) {
          onChange(text);
        }
        setDraft(null);
      }}
    />
  );
}

function labelOf({ name }: ITrainingField, trans: TranslationBundle): string {
  switch (name) {
    case 'name':
      return trans.__('Name');
    case 'runtime':
      return trans.__('Runtime');
    case 'nodes':
      return trans.__('Nodes');
    case 'processes':
      return trans.__('Processes per node');
    case 'replicas':
      return trans.__('Replicas');
    case 'image':
      return trans.__('Image');
    case 'command':
      return trans.__('Command');
    case 'args':
      return trans.__('Arguments');
    case 'gpu':
      return trans.__('GPUs');
    case 'cpu':
      return trans.__('CPU');
    case 'memory':
      return trans.__('Memory');
    case 'restart':
      return trans.__('Restart policy');
    case 'clean_up':
      return trans.__('Delete pods at the end');
    case 'restarts':
      return trans.__('Restarts');
    case 'deadline':
      return trans.__('Time limit in seconds');
    default:
      return name;
  }
}
