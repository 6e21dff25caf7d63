import { Dialog, InputDialog, showDialog } from '@jupyterlab/apputils';
import * as React from 'react';

import '../../style/services.css';

import type { IEndpoint, IService } from '../api';
import { CommandIDs } from '../commands';
import type { IConvectApi } from '../tokens';
import type { Execute, IPageOptions } from '../ui';
import {
  Action,
  Ago,
  Failure,
  Page,
  ReadModel,
  runtimeLabel,
  useAction,
  useModel,
  useTrans
} from '../ui';
import { addressOf } from './address';
import { Copied, showToken } from './dialog';
import { isUp, Services } from './list';

const PAUSE = 10_000;

/** All endpoints and services. */
export class EndpointsModel extends ReadModel {
  constructor(readonly api: IConvectApi) {
    super(PAUSE);
  }

  endpoints: readonly IEndpoint[] | null = null;
  services: readonly IService[] = [];

  /** Have a service stopped, which takes a moment. */
  async stop(id: string): Promise<void> {
    await this.api.stopService(id);
    this._stopping.add(id);
  }

  isStopping(id: string): boolean {
    return this._stopping.has(id);
  }

  protected async load(): Promise<void> {
    const [{ endpoints }, { services }] = await Promise.all([
      this.api.endpoints(),
      this.api.services()
    ]);
    this.endpoints = endpoints;
    this.services = services;
    const up = services.filter(isUp);
    const ids = new Set(up.map(({ id }) => id));
    this._stopping.forEach(id => ids.has(id) || this._stopping.delete(id));
    if (this._stopping.size || up.some(({ state }) => state === 'starting')) {
      this.refresh();
    }
  }

  /** Services that were told to stop and have not ended yet. */
  private _stopping = new Set<string>();
}

/** What can be called and what stays up, in the main area. */
export class EndpointsPage extends Page<EndpointsModel> {
  constructor(model: EndpointsModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-endpoints');
    this.title.label = options.trans.__('Services');
  }

  protected get name(): string | null {
    return null;
  }

  protected content(execute: Execute): JSX.Element {
    return <Endpoints model={this.model} execute={execute} />;
  }
}

function Endpoints(props: {
  model: EndpointsModel;
  execute: Execute;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const { endpoints, error } = model;
  return (
    <>
      <Failure error={error} />
      {endpoints?.length === 0 && (
        <div className="jp-Convect-empty">
          <h3>{trans.__('No endpoints yet')}</h3>
          <p>
            {trans.__(
              'To call a notebook, script or pipeline over HTTP, choose Make Callable… in its context menu in the file browser, or in the Run menu.'
            )}
          </p>
        </div>
      )}
      {endpoints && endpoints.length > 0 && (
        <>
          <header className="jp-Convect-header">
            <div className="jp-Convect-title">
              <h2>{trans.__('Endpoints')}</h2>
            </div>
            <div className="jp-Convect-facts">
              {trans.__('They can be called while this server is running.')}
            </div>
          </header>
          <ul className="jp-Convect-endpointList">
            {endpoints.map(endpoint => (
              <Endpoint key={endpoint.id} endpoint={endpoint} {...props} />
            ))}
          </ul>
        </>
      )}
      {model.services.length > 0 && <Services model={model} />}
    </>
  );
}

function Endpoint(props: {
  endpoint: IEndpoint;
  model: EndpointsModel;
  execute: Execute;
}): JSX.Element {
  const { endpoint, model, execute } = props;
  const { id, name, paused } = endpoint;
  const { api } = model;
  const trans = useTrans();
  const [failure, act] = useAction(() => model.refresh());
  const { path, runtime } = endpoint.request as {
    path?: string;
    runtime?: string;
  };
  return (
    <li className="jp-Convect-endpoint" data-endpoint={id}>
      <div className="jp-Convect-title">
        <h3>{name}</h3>
        {paused && (
          <span className="jp-Convect-titleState">{trans.__('Paused')}</span>
        )}
        <div className="jp-Convect-actions" role="toolbar" aria-label={name}>
          <Action
            label={trans.__('Try It')}
            title={trans.__('Open a page with a form of its parameters')}
            onClick={() =>
              window.open(addressOf(api, endpoint), '_blank', 'noopener')
            }
          />
          <Action
            label={paused ? trans.__('Resume') : trans.__('Pause')}
            onClick={act(() => api.editEndpoint(id, { paused: !paused }))}
          />
          <Action
            label={trans.__('New Token…')}
            onClick={act(async () => {
              const { button, value } = await InputDialog.getText({
                title: trans.__('New token for %1', name),
                label: trans.__('Who it is for:'),
                okLabel: trans.__('Create'),
                cancelLabel: trans.__('Cancel')
              });
              if (button.accept && value) {
                await showToken(
                  api,
                  await api.addToken(id, { name: value }),
                  trans
                );
              }
            })}
          />
          <Action
            label={trans.__('Remove…')}
            onClick={act(async () => {
              const { button } = await showDialog({
                title: trans.__('Remove %1?', name),
                body: trans.__('Nobody can call it any more. Its runs stay.'),
                buttons: [
                  Dialog.cancelButton({ label: trans.__('Cancel') }),
                  Dialog.warnButton({ label: trans.__('Remove') })
                ]
              });
              if (button.accept) {
                await api.deleteEndpoint(id);
              }
            })}
          />
        </div>
      </div>
      <Failure error={failure} />
      <div className="jp-Convect-facts">
        {path && (
          <button
            type="button"
            className="jp-Convect-link"
            onClick={() => execute(CommandIDs.openFile, { path })}
          >
            {path}
          </button>
        )}
        {runtime && runtime !== 'local' && (
          <span>{runtimeLabel(trans, runtime)}</span>
        )}
        <span>
          {trans._n(
            '%1 call at once',
            '%1 calls at once',
            endpoint.concurrency
          )}
        </span>
        <span>{trans._n('%1 may wait', '%1 may wait', endpoint.queue)}</span>
        {endpoint.rate > 0 && (
          <span>
            {trans._n('%1 per minute', '%1 per minute', endpoint.rate)}
          </span>
        )}
      </div>
      <Copied label={trans.__('Address')} text={addressOf(api, endpoint)} />
      <ul
        className="jp-Convect-tokens"
        aria-label={trans.__('Tokens of %1', name)}
      >
        {endpoint.tokens.map(token => (
          <li key={token.name}>
            <span>{trans.__('Token “%1”', token.name)}</span>
            <Ago time={token.created} />
            <Action
              label={trans.__('Take Back')}
              title={trans.__('Whoever has it can no longer call the endpoint')}
              onClick={act(() =>
                api.deleteToken({ endpoint: id, name: token.name })
              )}
            />
          </li>
        ))}
      </ul>
    </li>
  );
}
