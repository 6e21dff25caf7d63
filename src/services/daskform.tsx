import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, JSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IConvectApi, IDaskCluster, IDaskOption } from '../api';
import {
  Check,
  Failure,
  Field,
  formatJson,
  Observable,
  Select,
  TextField,
  useModel,
  useTrans
} from '../ui';
import type { IAskedForm } from '../ui/asking';

/** What is asked before a Dask cluster is made: the options of the gateway, and how many workers. */
export class DaskForm extends Observable implements IAskedForm<IDaskCluster> {
  constructor(
    private readonly api: IConvectApi,
    readonly trans: TranslationBundle
  ) {
    super();
    void this.load();
  }

  options: readonly IDaskOption[] | null = null;
  values: Readonly<Record<string, string>> = {};
  workers = '1';
  complaints: Readonly<Record<string, string>> = {};
  failure: unknown = null;

  set(name: string, value: string): void {
    this.values = { ...this.values, [name]: value };
    this.forgive(name);
  }

  setWorkers(workers: string): void {
    this.workers = workers;
    this.forgive('');
  }

  async submit(): Promise<IDaskCluster | null> {
    this.failure = null;
    const complaints: Record<string, string> = {};
    const options: JSONObject = {};
    for (const option of this.options ?? []) {
      const { value, complaint } = readOption(
        option,
        this.values[option.field] ?? '',
        this.trans
      );
      if (complaint) {
        complaints[option.field] = complaint;
      } else if (value !== undefined) {
        options[option.field] = value;
      }
    }
    const workers = Number(this.workers.trim() || '0');
    if (!Number.isInteger(workers) || workers < 0) {
      complaints[''] = this.trans.__('Enter a whole number.');
    }
    this.complaints = complaints;
    let made: IDaskCluster | null = null;
    if (this.options && Object.keys(complaints).length === 0) {
      try {
        made = await this.api.newDaskCluster({ options, workers });
      } catch (error) {
        this.failure = error;
      }
    }
    this.touch();
    return made;
  }

  private forgive(name: string): void {
    const others = { ...this.complaints };
    delete others[name];
    this.complaints = others;
    this.touch();
  }

  private async load(): Promise<void> {
    try {
      const { options } = await this.api.daskOptions();
      this.options = options;
      this.values = Object.fromEntries(
        options.map(option => [option.field, textOf(option)])
      );
    } catch (error) {
      this.failure = error;
    }
    this.touch();
  }
}

/** The default of an option, as it is typed. */
export function textOf({ spec, default: value }: IDaskOption): string {
  if (spec.type === 'mapping') {
    return Object.entries((value ?? {}) as JSONObject)
      .map(([name, each]) => `${name}=${String(each)}`)
      .join('\n');
  }
  return value === null || value === undefined
    ? ''
    : typeof value === 'string'
      ? value
      : formatJson(value);
}

/** What was typed for an option, or what is wrong with it; nothing leaves it to the gateway. */
export function readOption(
  option: IDaskOption,
  text: string,
  trans: TranslationBundle
): { value?: JSONValue; complaint?: string } {
  const { type, min, max } = option.spec;
  if (type === 'mapping') {
    const lines = text.split('\n').filter(line => line.trim());
    const wrong = lines.find(line => line.indexOf('=') < 1);
    return wrong === undefined
      ? {
          value: Object.fromEntries(
            lines.map(line => [
              line.slice(0, line.indexOf('=')).trim(),
              line.slice(line.indexOf('=') + 1).trim()
            ])
          )
        }
      : { complaint: trans.__('Write NAME=value, one on each line.') };
  }
  if (type === 'bool') {
    return { value: text === 'true' };
  }
  if (type === 'int' || type === 'float') {
    if (!text.trim()) {
      return {};
    }
    const value = Number(text);
    if (type === 'int' ? !Number.isInteger(value) : !Number.isFinite(value)) {
      return {
        complaint:
          type === 'int'
            ? trans.__('Enter a whole number.')
            : trans.__('Enter a number.')
      };
    }
    if (typeof min === 'number' && value < min) {
      return { complaint: trans.__('Enter %1 or more.', min) };
    }
    if (typeof max === 'number' && value > max) {
      return { complaint: trans.__('Enter %1 or less.', max) };
    }
    return { value };
  }
  return { value: text };
}

export function DaskFields(props: { form: DaskForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  return (
    <div className="jp-Convect-form">
      {form.options === null && form.failure === null && (
        <div role="status">{trans.__('Asking the gateway…')}</div>
      )}
      {form.options && (
        <TextField
          label={trans.__('Workers')}
          value={form.workers}
          error={form.complaints['']}
          onChange={value => form.setWorkers(value)}
        />
      )}
      {form.options?.map(option => (
        <DaskField key={option.field} form={form} option={option} />
      ))}
      <Failure error={form.failure} />
    </div>
  );
}

function DaskField(props: {
  form: DaskForm;
  option: IDaskOption;
}): JSX.Element {
  const { form, option } = props;
  const { field, spec } = option;
  const trans = useTrans();
  const label = ownLabels(trans)[option.label] ?? option.label;
  const value = form.values[field] ?? '';
  const onChange = (text: string) => form.set(field, text);
  if (spec.type === 'bool') {
    return (
      <Check
        label={label}
        checked={value === 'true'}
        onChange={checked => onChange(String(checked))}
      />
    );
  }
  if (spec.type === 'select') {
    return (
      <Field label={label}>
        <Select
          value={value}
          options={(spec.options ?? []).map(each => ({
            value: each,
            label: each
          }))}
          onChange={onChange}
        />
      </Field>
    );
  }
  const isMapping = spec.type === 'mapping';
  const bounds =
    typeof spec.min === 'number' && typeof spec.max === 'number'
      ? trans.__('From %1 to %2', spec.min, spec.max)
      : null;
  return (
    <TextField
      label={label}
      title={field}
      value={value}
      lines={isMapping ? 3 : undefined}
      example={isMapping ? 'NAME=value' : undefined}
      hint={isMapping ? trans.__('NAME=value, one on each line') : bounds}
      error={form.complaints[field]}
      onChange={onChange}
    />
  );
}

/** The labels of one's own gateway, which has no language. */
function ownLabels(trans: TranslationBundle): Record<string, string> {
  return {
    'Cores of a worker': trans.__('Cores of a worker'),
    'Memory of a worker in GiB': trans.__('Memory of a worker in GiB'),
    'Environment variables': trans.__('Environment variables')
  };
}
