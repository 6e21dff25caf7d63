import { Dialog, showDialog } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IService } from '../api';
import { sentenceOf } from '../api';
import { Action, Ago, StateIcon, useAction, useTrans } from '../ui';
import type { EndpointsModel } from './page';
import { pictureOf } from './states';

export function isUp({ state }: IService): boolean {
  return state === 'starting' || state === 'ready';
}

/** What stays up on this machine and has an address, and what has ended lately. */
export function Services(props: { model: EndpointsModel }): JSX.Element {
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
        {props.model.services.map(service => (
          <Service key={service.id} {...props} service={service} />
        ))}
      </ul>
    </section>
  );
}

function Service(props: {
  model: EndpointsModel;
  service: IService;
}): JSX.Element {
  const { model, service } = props;
  const { api } = model;
  const { id, kind, name, state } = service;
  const trans = useTrans();
  const isStopping = model.isStopping(id);
  const label = isStopping ? trans.__('Stopping') : stateOf(state, trans);
  const isUsable = isUp(service) && !isStopping;
  const [failure, act] = useAction(() => model.refresh());
  const open = (): void => {
    const origin = new URL(api.settings.baseUrl, location.href).origin;
    window.open(URLExt.join(origin, service.path), '_blank', 'noopener');
  };
  return (
    <li className="jp-Convect-endpoint" data-service={id}>
      <div className="jp-Convect-title">
        <StateIcon
          state={isStopping ? 'cancelled' : pictureOf(state)}
          label={label}
        />
        <h3>{name}</h3>
        <span className="jp-Convect-titleState">{label}</span>
        <div className="jp-Convect-actions" role="toolbar" aria-label={name}>
          {isUsable && !['dask', 'endpoint'].includes(kind) && (
            <Action label={trans.__('Open')} onClick={open} />
          )}
          <Action
            label={trans.__('Log')}
            onClick={act(async () =>
              showLog(name, (await api.serviceLog(id)).text, trans)
            )}
          />
          {isUsable && (
            <Action
              label={trans.__('Stop')}
              onClick={act(() => model.stop(id))}
            />
          )}
          {!isUp(service) && (
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
        {isUsable && (
          <span>
            {trans.__('Last used:')} <Ago time={service.used} />
          </span>
        )}
        {isUsable && service.host && <span>{service.host}</span>}
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
    case 'dask':
      return 'Dask';
    case 'endpoint':
      return trans.__('Function of an endpoint');
    case 'tensorboard':
      return 'TensorBoard';
    default:
      return kind;
  }
}
