import { URLExt } from '@jupyterlab/coreutils';
import { Poll } from '@lumino/polling';
import * as React from 'react';

import '../../style/services.css';

import type { IService } from '../api';
import { sentenceOf } from '../api';
import type { IConvectApi } from '../tokens';
import type { IPageOptions } from '../ui';
import { Action, Page, PageModel, translated, useModel, useTrans } from '../ui';

const PAUSE = 500;
const SANDBOX =
  'allow-downloads allow-forms allow-popups allow-same-origin allow-scripts';

/** A service that somebody looks at, asked for until it is ready. */
export class ServiceModel extends PageModel {
  constructor(
    readonly api: IConvectApi,
    public service: IService
  ) {
    super();
    this._poll = new Poll({
      auto: false,
      factory: () => this.read(),
      frequency: { interval: PAUSE, backoff: false }
    });
    void this._poll.start();
  }

  error: unknown = null;

  get address(): string {
    const { origin } = new URL(this.api.settings.baseUrl, location.href);
    return URLExt.join(origin, this.service.path);
  }

  override dispose(): void {
    this._poll.dispose();
    super.dispose();
  }

  /** Start it again, once it has ended. */
  async start(): Promise<void> {
    try {
      this.service = await this.api.restartService(this.service.id);
      this.error = null;
      void this._poll.start();
    } catch (error) {
      this.error = error;
    }
    this.touch();
  }

  /** Look again whether it is still there, as when its page is opened anew. */
  look(): void {
    void this._poll.start();
  }

  private async read(): Promise<void> {
    try {
      this.service = await this.api.service(this.service.id);
      this.error = null;
    } catch (error) {
      this.error = error;
    }
    if (this.error || this.service.state !== 'starting') {
      void this._poll.stop();
    }
    this.touch();
  }

  private _poll: Poll;
}

/** A service in a tab of JupyterLab. */
export class ServicePage extends Page<ServiceModel> {
  constructor(model: ServiceModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-opened');
    this.title.label = model.service.name;
  }

  protected get name(): string | null {
    return this.model.service.name;
  }

  protected content(): JSX.Element {
    return <Opened model={this.model} />;
  }
}

function Opened(props: { model: ServiceModel }): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const { service, error } = model;
  if (error === null && service.state === 'ready') {
    return (
      <iframe title={service.name} src={model.address} sandbox={SANDBOX} />
    );
  }
  if (error === null && service.state === 'starting') {
    return (
      <div className="jp-Convect-empty" role="status">
        {trans.__('%1 is starting…', service.name)}
      </div>
    );
  }
  return (
    <div className="jp-Convect-empty" role="alert">
      <p>
        {error !== null
          ? sentenceOf(error)
          : service.reason
            ? translated(service.reason, trans)
            : trans.__('%1 has stopped.', service.name)}
      </p>
      <Action
        label={trans.__('Start again')}
        wide
        onClick={() => void model.start()}
      />
    </div>
  );
}
