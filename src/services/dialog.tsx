import {
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import '../../style/services.css';

import type { IEndpoint } from '../api';
import { ConvectError, sentenceOf } from '../api';
import type { IConvectApi } from '../tokens';
import { Action, TranslationProvider, useTrans } from '../ui';
import { addressOf, callOf } from './address';

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
  let id: string | undefined;
  for (;;) {
    try {
      await showToken(api, await api.addEndpoint({ path, id }), trans);
      return true;
    } catch (error) {
      const isTaken = error instanceof ConvectError && error.status === 409;
      const isBad =
        error instanceof ConvectError && error.code === 'bad-endpoint';
      if (!isTaken && !isBad) {
        Notification.error(sentenceOf(error), { autoClose: 8000 });
        return false;
      }
      const asked = await InputDialog.getText({
        title: trans.__('Make %1 callable', path),
        label: `${sentenceOf(error)} ${trans.__('Its part of the address:')}`,
        text: id ?? '',
        okLabel: trans.__('Make Callable'),
        cancelLabel: trans.__('Cancel')
      });
      if (!asked.button.accept || !asked.value) {
        return false;
      }
      id = asked.value;
    }
  }
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
