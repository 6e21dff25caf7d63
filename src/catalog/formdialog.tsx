import type { ReadonlyJSONObject } from '@lumino/coreutils';
import * as React from 'react';

import { Failure, Field, Select, TextField, useModel, useTrans } from '../ui';
import { askWith } from '../ui/asking';
import { formatDuration } from '../ui/format';
import { lazy } from '../ui/lazy';
import { newCatalogLabel } from './commands';
import type { CatalogForm } from './form';
import type { IFormValues } from './settings';
import { isForeign } from './settings';
import type { ICatalog } from './types';

const SchemaForm = lazy(() => import('../ui/schemaform'));

type Options = IFormValues['options'];

/** Ask how a catalog is to be, until the server has taken it; null when nobody wants it. */
export function askCatalog(form: CatalogForm): Promise<ICatalog | null> {
  const { trans, kind, catalog } = form;
  const words = catalog
    ? {
        title: trans.__('Configure %1', catalog.name),
        accept: trans.__('Save')
      }
    : { title: newCatalogLabel(kind, trans), accept: trans.__('Import') };
  return askWith(form, words, () => <CatalogFormView form={form} />);
}

function CatalogFormView(props: { form: CatalogForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  return (
    <div className="jp-Convect-form" aria-busy={form.isSending}>
      <FormText
        form={form}
        name="name"
        label={trans.__('Name')}
        hint={trans.__('How the panel calls it.')}
      />
      <fieldset className="jp-Convect-group">
        <legend>{trans.__('Configuration')}</legend>
        {form.kind === 'url' ? (
          <FormText
            form={form}
            name="urls"
            lines={4}
            label={trans.__('URLs')}
            hint={trans.__(
              'One per line: a component, a list of components, or a folder of a repository on GitHub. They are stored here with their digest and work offline.'
            )}
            example="https://example.org/component.yaml"
          />
        ) : isForeign(form.kind) ? (
          form.schema && (
            <React.Suspense fallback={null}>
              <SchemaForm
                schema={form.schema}
                value={form.values.options as ReadonlyJSONObject}
                onChange={options => form.set({ options: options as Options })}
                isChecked={form.hasTried}
              />
            </React.Suspense>
          )
        ) : (
          <FormText
            form={form}
            name="path"
            label={form.kind === 'file' ? trans.__('File') : trans.__('Folder')}
            hint={
              form.kind === 'file'
                ? trans.__('A component, or a list of components.')
                : trans.__('All components in it and in the folders in it.')
            }
          />
        )}
        <FormText
          form={form}
          name="categories"
          label={trans.__('Categories')}
          hint={trans.__('Separated by commas. The components appear there.')}
        />
        {form.kind === 'url' && <AuthFields form={form} />}
        {form.kind === 'url' || isForeign(form.kind) ? (
          <RefreshField form={form} />
        ) : (
          <p className="jp-Convect-aside">
            {trans.__('Changes to the files are picked up automatically.')}
          </p>
        )}
        {form.kind === 'url' && <Replacements form={form} />}
      </fieldset>
      <Failure error={form.failure} />
    </div>
  );
}

const HOUR = 3600;

function RefreshField({ form }: { form: CatalogForm }): JSX.Element {
  const trans = useTrans();
  const { refresh } = form.values;
  const choices = [
    { value: '', label: trans.__('When asked') },
    { value: String(HOUR), label: trans.__('Every hour') },
    { value: String(24 * HOUR), label: trans.__('Every day') },
    { value: String(7 * 24 * HOUR), label: trans.__('Every week') }
  ];
  if (!choices.some(({ value }) => value === refresh)) {
    choices.push({ value: refresh, label: formatDuration(Number(refresh)) });
  }
  return (
    <Field
      label={trans.__('Refresh')}
      hint={trans.__(
        'When to look for changes. They are shown before they are applied.'
      )}
    >
      <Select
        value={refresh}
        options={choices}
        onChange={value => form.set({ refresh: value })}
      />
    </Field>
  );
}

function AuthFields({ form }: { form: CatalogForm }): JSX.Element {
  const trans = useTrans();
  const { auth } = form.values;
  return (
    <>
      <Field
        label={trans.__('Authentication')}
        hint={trans.__(
          'The secret is looked up when it is needed. It is never stored here.'
        )}
      >
        <Select
          value={auth}
          options={[
            { value: 'none', label: trans.__('None') },
            {
              value: 'env',
              label: trans.__('Environment variable of the server')
            },
            { value: 'keyring', label: trans.__('Secret in the keyring') }
          ]}
          onChange={value => form.set({ auth: value as IFormValues['auth'] })}
        />
      </Field>
      {auth === 'env' && (
        <FormText form={form} name="env" label={trans.__('Variable')} />
      )}
      {auth === 'keyring' && (
        <>
          <FormText form={form} name="secret" label={trans.__('Secret')} />
          <FormText form={form} name="key" label={trans.__('Key')} />
        </>
      )}
      {auth !== 'none' && (
        <FormText
          form={form}
          name="scheme"
          label={trans.__('Scheme')}
          hint={trans.__('The word before the secret, as in Bearer or Basic.')}
        />
      )}
    </>
  );
}

function Replacements({ form }: { form: CatalogForm }): JSX.Element {
  const trans = useTrans();
  const isWrong = form.complaints.replacements !== undefined;
  const [isOpen, setOpen] = React.useState(form.values.replacements !== '');
  return (
    <details
      className="jp-Convect-more"
      open={isOpen || isWrong}
      onToggle={event => setOpen(event.currentTarget.open)}
    >
      <summary>{trans.__('Dead addresses')}</summary>
      <FormText
        form={form}
        name="replacements"
        lines={2}
        label={trans.__('Read instead')}
        hint={trans.__(
          'For graphs that refer to components that are gone: dead address = other address, one per line.'
        )}
      />
    </details>
  );
}

function FormText(props: {
  form: CatalogForm;
  name: Exclude<keyof IFormValues, 'auth' | 'options'>;
  label: string;
  hint?: string;
  example?: string;
  lines?: number;
}): JSX.Element {
  const { form, name, ...field } = props;
  return (
    <TextField
      {...field}
      value={form.values[name]}
      error={form.complaints[name]}
      onChange={value => form.set({ [name]: value })}
    />
  );
}
