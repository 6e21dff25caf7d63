import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import '../../style/services.css';

import type { IEndpoint } from '../api';
import type { IConvectApi } from '../tokens';
import {
  Action,
  Failure,
  Field,
  runtimeLabel,
  Section,
  Select,
  TextField,
  TranslationProvider,
  useModel,
  useTrans
} from '../ui';
import { askWith } from '../ui/asking';
import { addressOf, callOf } from './address';
import type { EndpointText } from './form';
import { EndpointForm } from './form';

/** Make a file callable and tell its token, which nobody can tell again. */
export async function makeCallable(
  api: IConvectApi,
  path: string | null,
  trans: TranslationBundle
): Promise<boolean> {
  if (!path) {
    Notification.warning(
      trans.__('Open or select a notebook, a script or a pipeline first.'),
      { autoClose: 5000 }
    );
    return false;
  }
  const form = new EndpointForm(api, path, trans);
  const title = trans.__('Make %1 callable', PathExt.basename(path));
  const accept = trans.__('Make Callable');
  const made = await askWith(form, { title, accept }, () => (
    <EndpointFields form={form} />
  ));
  if (made) {
    await showToken(api, made, trans);
  }
  return made !== null;
}

function EndpointFields(props: { form: EndpointForm }): JSX.Element {
  const form = useModel(props.form);
  const trans = useTrans();
  const [isOpen, setOpen] = React.useState(false);
  const text = (
    name: EndpointText,
    label: string,
    example?: string,
    hint?: string
  ) => (
    <TextField
      label={label}
      example={example}
      hint={hint}
      value={form.values[name]}
      error={form.complaints[name]}
      onChange={value => form.set({ [name]: value })}
    />
  );
  return (
    <div className="jp-Convect-form">
      {text(
        'id',
        trans.__('Part of the address'),
        trans.__('like the name of the file')
      )}
      <Field label={trans.__('Runtime')} hint={form.place}>
        <Select
          value={form.values.runtime}
          options={form.runtimes.map(({ name, display_name, problem }) => ({
            value: name,
            label: runtimeLabel(trans, name, display_name),
            disabled: problem !== null
          }))}
          onChange={runtime => form.set({ runtime })}
        />
      </Field>
      {form.hasPods && (
        <>
          {text('image', trans.__('Image'), trans.__('as configured'))}
          {text('cpu', trans.__('CPU'), '500m')}
          {text('memory', trans.__('Memory'), '2Gi')}
          {text('gpu', trans.__('GPUs'), '0')}
        </>
      )}
      <Section
        title={trans.__('Limits')}
        isOpen={isOpen}
        onToggle={setOpen}
        count={form.limits}
      >
        {text('concurrency', trans.__('Calls at once'))}
        {text('queue', trans.__('Calls that may wait'), '100')}
        {text('rate', trans.__('Calls per minute'), trans.__('no limit'))}
        {text(
          'idle',
          trans.__('Idle minutes'),
          '30',
          trans.__(
            'A function in a cell tagged “serve” stays loaded for so long without calls.'
          )
        )}
      </Section>
      <Failure error={form.failure} />
    </div>
  );
}

/** Show a token that was just made. */
export async function showToken(
  api: IConvectApi,
  endpoint: IEndpoint,
  trans: TranslationBundle
): Promise<void> {
  await showDialog({
    title: trans.__('The token of %1', endpoint.name),
    body: ReactWidget.create(
      <TranslationProvider value={trans}>
        <Told api={api} endpoint={endpoint} />
      </TranslationProvider>
    ),
    buttons: [Dialog.okButton({ label: trans.__('Done') })]
  });
}

function Told(props: { api: IConvectApi; endpoint: IEndpoint }): JSX.Element {
  const trans = useTrans();
  const { api, endpoint } = props;
  const token = endpoint.token ?? '';
  return (
    <div className="jp-Convect-told">
      <p>{trans.__('Copy the token now: it is not shown again.')}</p>
      <Copied label={trans.__('Token')} text={token} />
      <Copied label={trans.__('Address')} text={addressOf(api, endpoint)} />
      <Copied label={trans.__('Call')} text={callOf(api, endpoint, token)} />
    </div>
  );
}

/** A text that one can copy, by a button or by hand. */
export function Copied(props: { label: string; text: string }): JSX.Element {
  const trans = useTrans();
  const [isCopied, setCopied] = React.useState(false);
  return (
    <label className="jp-Convect-copied">
      <span>{props.label}</span>
      <input
        className="jp-mod-styled"
        readOnly
        value={props.text}
        onFocus={event => event.currentTarget.select()}
      />
      <Action
        label={isCopied ? trans.__('Copied') : trans.__('Copy')}
        onClick={() => {
          void navigator.clipboard
            .writeText(props.text)
            .then(() => setCopied(true));
        }}
      />
    </label>
  );
}
