import { Dialog, showDialog } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IService } from '../api';
import { sentenceOf } from '../api';
import type { IConvectApi } from '../tokens';
import { Action, Ago, useAction, useTrans } from '../ui';

interface IServicesProps {
  services: readonly IService[];
  api: IConvectApi;
  onChange: () => void;
}

/** What stays up on this machine and has an address, and what has ended lately. */
export function Services(props: IServicesProps): JSX.Element {
  const trans = useTrans();
  return (
    <section aria-label={trans.__('Services')}>
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{trans.__('Services')}</h2>
        </div>
        <div className="jp-Convect-facts">
          {trans.__(
            'They stay up when this server stops, and stop when nobody uses them.'
          )}
        </div>
      </header>
      <ul className="jp-Convect-endpointList">
        {props.services.map(service => (
          <Service key={service.id} {...props} service={service} />
        ))}
      </ul>
    </section>
  );
}

function Service(
  props: Omit<IServicesProps, 'services'> & { service: IService }
): JSX.Element {
  const { api, onChange, service } = props;
  const { id, kind, name, state } = service;
  const trans = useTrans();
  const isUp = state === 'starting' || state === 'ready';
  const [failure, act] = useAction(onChange);
  const open = (): void => {
    const origin = new URL(api.settings.baseUrl, location.href).origin;
    window.open(URLExt.join(origin, service.path), '_blank', 'noopener');
  };
  return (
    <li className="jp-Convect-endpoint" data-service={id}>
      <div className="jp-Convect-title">
        <h3>{name}</h3>
        <span className="jp-Convect-titleState">{stateOf(state, trans)}</span>
        <div className="jp-Convect-actions" role="toolbar" aria-label={name}>
          {isUp && kind !== 'endpoint' && (
            <Action label={trans.__('Open')} onClick={open} />
          )}
          <Action
            label={trans.__('Log')}
            onClick={act(async () =>
              showLog(name, (await api.serviceLog(id)).text, trans)
            )}
          />
          {isUp ? (
            <Action
              label={trans.__('Stop')}
              onClick={act(() => api.stopService(id))}
            />
          ) : (
            <>
              <Action
                label={trans.__('Start')}
                onClick={act(() => api.restartService(id))}
              />
              <Action
                label={trans.__('Remove')}
                onClick={act(() => api.removeService(id))}
              />
            </>
          )}
        </div>
      </div>
      {(failure ?? service.reason) && (
        <div
          className="jp-Convect-message"
          data-severity={failure || state === 'failed' ? 'error' : 'info'}
          role="alert"
        >
          {failure ?? sentenceOf(service.reason)}
        </div>
      )}
      <div className="jp-Convect-facts">
        <span>{kindOf(kind, trans)}</span>
        {isUp && (
          <span>
            {trans.__('Last used:')} <Ago time={service.used} />
          </span>
        )}
        {isUp && service.host && <span>{service.host}</span>}
      </div>
    </li>
  );
}

async function showLog(
  name: string,
  text: string,
  trans: TranslationBundle
): Promise<void> {
  await showDialog({
    title: trans.__('The log of %1', name),
    body: ReactWidget.create(
      <pre className="jp-Convect-serviceLog">
        {text || trans.__('It has printed nothing.')}
      </pre>
    ),
    buttons: [Dialog.okButton({ label: trans.__('Done') })]
  });
}

function stateOf(state: IService['state'], trans: TranslationBundle): string {
  switch (state) {
    case 'starting':
      return trans.__('Starting');
    case 'ready':
      return trans.__('Ready');
    case 'stopped':
      return trans.__('Stopped');
    case 'failed':
      return trans.__('Failed');
    case 'lost':
      return trans.__('Lost');
  }
}

function kindOf(kind: string, trans: TranslationBundle): string {
  switch (kind) {
    case 'app':
      return trans.__('App');
    case 'endpoint':
      return trans.__('Function of an endpoint');
    case 'tensorboard':
      return 'TensorBoard';
    default:
      return kind;
  }
}
