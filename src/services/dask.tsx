import type { JupyterFrontEnd } from '@jupyterlab/application';
import {
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Poll } from '@lumino/polling';
import * as React from 'react';

import '../../style/services.css';

import type { IDaskCluster, IDaskOverview } from '../api';
import { CommandIDs } from '../commands';
import type { IConvectApi } from '../tokens';
import type { IPageOptions } from '../ui';
import {
  Action,
  Ago,
  Empty,
  Failure,
  formatDuration,
  formatSize,
  Page,
  PageModel,
  StateIcon,
  translated,
  useAction,
  useModel,
  useTrans
} from '../ui';
import { askWith } from '../ui/asking';
import { startDrag } from '../ui/dragging';
import type { IDaskSample } from './daskcurves';
import { DaskCurves, sampled } from './daskcurves';
import { DaskFields, DaskForm } from './daskform';
import {
  clientCell,
  clientCode,
  insertCode,
  notebookOf,
  versionsOf
} from './daskkernel';
import { pictureOf } from './states';

const PAUSE = 2_000;
const SANDBOX = 'allow-downloads allow-popups allow-same-origin allow-scripts';

/** The Dask clusters of this user, read again while somebody looks. */
export class DaskModel extends PageModel {
  constructor(
    readonly api: IConvectApi,
    readonly app: JupyterFrontEnd,
    readonly openPlot: (id: string) => Promise<unknown>
  ) {
    super();
    this._poll = new Poll({
      auto: false,
      factory: () => this.read(),
      frequency: { interval: PAUSE, backoff: true, max: 15 * PAUSE }
    });
  }

  overview: IDaskOverview | null = null;
  /** What was seen of each cluster since the page was opened, by its id. */
  seen: ReadonlyMap<string, readonly IDaskSample[]> = new Map();
  error: unknown = null;

  override dispose(): void {
    this._poll.dispose();
    super.dispose();
  }

  refresh(): void {
    void this._poll.refresh();
  }

  protected override onShown(isShown: boolean): void {
    void (isShown ? this._poll.start() : this._poll.stop());
  }

  private async read(): Promise<void> {
    try {
      this.overview = await this.api.dask();
      this.seen = sampled(this.seen, this.overview.clusters, Date.now() / 1000);
      this.error = null;
    } catch (error) {
      this.error = error;
      throw error;
    } finally {
      this.touch();
    }
  }

  private _poll: Poll;
}

/** Dask clusters, in the main area. */
export class DaskPage extends Page<DaskModel> {
  constructor(model: DaskModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-endpoints');
    this.title.label = options.trans.__('Dask clusters');
  }

  protected get name(): string | null {
    return null;
  }

  protected content(): JSX.Element {
    return <DaskClusters model={this.model} />;
  }
}

/** Nothing changes in a pane of a dashboard but what it shows itself. */
export class DaskPlotModel extends PageModel {
  constructor(
    readonly title: string,
    readonly address: string
  ) {
    super();
  }
}

/** A pane of the dashboard of a cluster, in a tab of JupyterLab. */
export class DaskPlotPage extends Page<DaskPlotModel> {
  constructor(model: DaskPlotModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-opened');
    this.title.label = model.title;
  }

  protected get name(): string | null {
    return this.model.title;
  }

  protected content(): JSX.Element {
    const { title, address } = this.model;
    return <iframe title={title} src={address} sandbox={SANDBOX} />;
  }
}

/** The page of a pane; its id is that of the cluster, and where the pane is in the dashboard. */
export async function plotPage(
  api: IConvectApi,
  id: string,
  options: IPageOptions
): Promise<DaskPlotPage> {
  const [cluster, path] = id.split('/');
  const { plots } = await api.daskPlots(cluster);
  const title = plots.find(plot => plot.path === path)?.title ?? path;
  const address = URLExt.join(
    api.url('daskCluster', cluster),
    'proxy',
    encodeURIComponent(path)
  );
  return new DaskPlotPage(new DaskPlotModel(title, address), options);
}

function DaskClusters(props: { model: DaskModel }): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const [failure, act] = useAction(() => model.refresh());
  const { overview, error, api } = model;
  const clusters = overview?.clusters ?? [];
  const gateway = overview?.gateway;
  return (
    <>
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{trans.__('Dask clusters')}</h2>
          <div
            className="jp-Convect-actions"
            role="toolbar"
            aria-label={trans.__('Dask clusters')}
          >
            <Action
              label={trans.__('New Dask Cluster…')}
              onClick={act(() => makeCluster(api, trans))}
            />
            {clusters.length > 0 && (
              <Action
                label={trans.__('Stop All…')}
                onClick={act(() => stopAll(api, clusters.length, trans))}
              />
            )}
          </div>
        </div>
        {gateway && (
          <div className="jp-Convect-facts">
            {gateway.is_own
              ? trans.__(
                  'Your own gateway makes clusters on this machine. Gateway() in a notebook finds it.'
                )
              : trans.__(
                  'The gateway of Dask’s configuration: %1',
                  gateway.address ?? ''
                )}
          </div>
        )}
      </header>
      <Failure error={error ?? failure} />
      {gateway?.reason && (
        <div className="jp-Convect-message" data-severity="error" role="alert">
          {translated(gateway.reason, trans)}
        </div>
      )}
      {overview && clusters.length === 0 && !error && (
        <Empty title={trans.__('No Dask clusters')}>
          {trans.__(
            'Clusters that notebooks and other programs make are listed here as well.'
          )}
        </Empty>
      )}
      <ul className="jp-Convect-endpointList">
        {clusters.map(cluster => (
          <DaskCluster key={cluster.id} cluster={cluster} model={model} />
        ))}
      </ul>
    </>
  );
}

function DaskCluster(props: {
  cluster: IDaskCluster;
  model: DaskModel;
}): JSX.Element {
  const { cluster, model } = props;
  const { id, state, step } = cluster;
  const { api, app } = model;
  const trans = useTrans();
  const [failure, act] = useAction(() => model.refresh());
  const title = trans.__('Cluster %1', id.slice(0, 8));
  const isRunning = state === 'running';
  return (
    <li className="jp-Convect-endpoint" data-cluster={id}>
      <div className="jp-Convect-title">
        <StateIcon state={pictureOf(state)} label={stateOf(state, trans)} />
        <h3
          className={isRunning ? 'jp-mod-draggable' : undefined}
          title={
            isRunning
              ? trans.__('Drag it into a notebook to connect with it')
              : undefined
          }
          onPointerDown={event => {
            if (isRunning && event.button === 0) {
              startDrag(
                event,
                title,
                () => clientCell(id),
                () => void test(api, app, id, trans, false).catch(() => null)
              );
            }
          }}
        >
          {title}
        </h3>
        <span className="jp-Convect-titleState">{stateOf(state, trans)}</span>
        {cluster.orphan && (
          <span className="jp-Convect-tag" data-severity="warning">
            {trans._n(
              'Nobody uses it. It holds %1 CPU and %2 of memory.',
              'Nobody uses it. It holds %1 CPUs and %2 of memory.',
              cluster.threads,
              formatSize(cluster.memory_limit)
            )}
          </span>
        )}
        <div className="jp-Convect-actions" role="toolbar" aria-label={title}>
          {isRunning && (
            <>
              <Action
                label={trans.__('Insert Client Code')}
                title={trans.__('Connect the open notebook with the cluster')}
                onClick={act(() => connect(api, app, cluster, trans))}
              />
              <Action
                label={trans.__('Scale…')}
                onClick={act(() => scale(api, cluster, trans))}
              />
              <Action
                label={trans.__('Dashboard…')}
                onClick={act(() => choosePlot(model, cluster, trans))}
              />
              <Action
                label={trans.__('Test')}
                title={trans.__(
                  'Compute something on every worker and compare versions'
                )}
                onClick={act(() => test(api, app, id, trans, true))}
              />
            </>
          )}
          <Action
            label={trans.__('Stop')}
            onClick={act(() => api.stopDaskCluster(id))}
          />
        </div>
      </div>
      <Failure error={failure} />
      {cluster.reason && (
        <div className="jp-Convect-message" data-severity="error" role="alert">
          {translated(cluster.reason, trans)}
        </div>
      )}
      <div className="jp-Convect-facts">
        <span>
          {trans.__('Started')} <Ago time={cluster.started} />
        </span>
        {step && (
          <button
            type="button"
            className="jp-Convect-link"
            onClick={() =>
              void app.commands.execute(CommandIDs.openRun, { id: step.run })
            }
          >
            {trans.__('Made for step “%1”', step.step)}
          </button>
        )}
        {cluster.is_known && <Numbers cluster={cluster} />}
      </div>
      {isRunning && <DaskCurves samples={model.seen.get(id) ?? []} />}
      {cluster.is_known && cluster.each_worker.length > 0 && (
        <Workers cluster={cluster} />
      )}
    </li>
  );
}

function Numbers(props: { cluster: IDaskCluster }): JSX.Element {
  const { cluster } = props;
  const trans = useTrans();
  const { wanted, workers, idle } = cluster;
  return (
    <>
      <span>
        {wanted !== null && wanted !== workers
          ? trans.__('%1 of %2 workers', workers, wanted)
          : trans._n('%1 worker', '%1 workers', workers)}
      </span>
      <span>{trans._n('%1 thread', '%1 threads', cluster.threads)}</span>
      <span>
        {trans.__(
          '%1 of %2 memory',
          formatSize(cluster.memory),
          formatSize(cluster.memory_limit)
        )}
      </span>
      {cluster.cpu !== null && (
        <span>{trans.__('CPU: %1%', Math.round(cluster.cpu))}</span>
      )}
      <span>
        {trans.__(
          'Tasks: %1 computing, %2 waiting, %3 in memory',
          cluster.processing,
          cluster.waiting,
          cluster.in_memory
        )}
      </span>
      <span data-severity={cluster.erred > 0 ? 'error' : undefined}>
        {trans._n('%1 error', '%1 errors', cluster.erred)}
      </span>
      <span>
        {trans._n(
          '%1 program connected',
          '%1 programs connected',
          cluster.clients
        )}
      </span>
      {idle !== null && idle >= 60 && (
        <span>{trans.__('Idle for at least %1', formatDuration(idle))}</span>
      )}
    </>
  );
}

function Workers(props: { cluster: IDaskCluster }): JSX.Element {
  const trans = useTrans();
  const { each_worker: workers } = props.cluster;
  return (
    <table className="jp-Convect-daskWorkers">
      <thead>
        <tr>
          <th>{trans.__('Worker')}</th>
          <th>{trans.__('CPU')}</th>
          <th>{trans.__('Memory')}</th>
        </tr>
      </thead>
      <tbody>
        {workers.map((worker, index) => (
          <tr key={`${worker.name} ${index}`}>
            <td>{worker.name}</td>
            <td>
              {worker.cpu !== null && (
                <Bar
                  value={worker.cpu}
                  most={100 * worker.threads}
                  text={`${Math.round(worker.cpu)}%`}
                />
              )}
            </td>
            <td>
              <Bar
                value={worker.memory}
                most={worker.memory_limit}
                text={`${formatSize(worker.memory)} / ${formatSize(worker.memory_limit)}`}
              />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Bar(props: {
  value: number;
  most: number;
  text: string;
}): JSX.Element {
  const { value, most, text } = props;
  const share = most > 0 ? Math.min(1, value / most) : 0;
  return (
    <span className="jp-Convect-daskBar">
      <span style={{ inlineSize: `${100 * share}%` }} />
      <em>{text}</em>
    </span>
  );
}

async function makeCluster(
  api: IConvectApi,
  trans: TranslationBundle
): Promise<void> {
  const form = new DaskForm(api, trans);
  const title = trans.__('New Dask cluster');
  await askWith(form, { title, accept: trans.__('Create') }, () => (
    <DaskFields form={form} />
  ));
}

async function stopAll(
  api: IConvectApi,
  count: number,
  trans: TranslationBundle
): Promise<void> {
  const { button } = await showDialog({
    title: trans._n('Stop %1 cluster?', 'Stop %1 clusters?', count),
    body: trans.__('What they compute and what they keep in memory is lost.'),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Stop All') })
    ]
  });
  if (button.accept) {
    await api.stopDaskClusters();
  }
}

/** A number of workers, or two between which the work decides. */
async function scale(
  api: IConvectApi,
  cluster: IDaskCluster,
  trans: TranslationBundle
): Promise<void> {
  const { button, value } = await InputDialog.getText({
    title: trans.__('Scale the cluster'),
    label: trans.__(
      'Workers, such as 4, or 0-8 to let the work decide between them:'
    ),
    text: String(cluster.wanted ?? cluster.workers),
    okLabel: trans.__('Scale'),
    cancelLabel: trans.__('Cancel')
  });
  if (!button.accept || value === null) {
    return;
  }
  const [first, last] = value.split('-').map(text => text.trim());
  const numbers = [first, last ?? first].map(Number);
  if (!first || last === '' || !numbers.every(Number.isInteger)) {
    throw new Error(trans.__('Enter a whole number, or two such as 0-8.'));
  }
  const { message } = await api.scaleDaskCluster(
    cluster.id,
    last === undefined
      ? { workers: numbers[0] }
      : { minimum: numbers[0], maximum: numbers[1] }
  );
  if (message) {
    Notification.warning(message, { autoClose: 8000 });
  }
}

async function choosePlot(
  model: DaskModel,
  { id }: IDaskCluster,
  trans: TranslationBundle
): Promise<void> {
  const { plots } = await model.api.daskPlots(id);
  const titles = plots.map(plot => plot.title);
  const { button, value } = await InputDialog.getItem({
    title: trans.__('Dashboard'),
    label: trans.__('Open in a tab:'),
    items: titles,
    current: Math.max(0, titles.indexOf('Task Stream')),
    okLabel: trans.__('Open'),
    cancelLabel: trans.__('Cancel')
  });
  const plot = plots.find(each => each.title === value);
  if (button.accept && plot) {
    await model.openPlot(`${id}/${plot.path}`);
  }
}

/** Put the code that connects with the cluster into the notebook, and see that versions fit. */
async function connect(
  api: IConvectApi,
  app: JupyterFrontEnd,
  { id }: IDaskCluster,
  trans: TranslationBundle
): Promise<void> {
  const panel = notebookOf(app);
  if (panel === null) {
    throw new Error(trans.__('Open a notebook first.'));
  }
  await insertCode(app, panel, clientCode(id));
  void test(api, app, id, trans, false).catch(() => undefined);
}

async function test(
  api: IConvectApi,
  app: JupyterFrontEnd,
  id: string,
  trans: TranslationBundle,
  isAsked: boolean
): Promise<void> {
  const kernel = await versionsOf(
    notebookOf(app)?.sessionContext.session?.kernel
  ).catch(() => null);
  const told = await api.testDaskCluster(id, { kernel });
  const differences = told.differences.map(each => translated(each, trans));
  if (differences.length > 0) {
    Notification.warning(differences.join(' '), { autoClose: false });
  } else if (isAsked) {
    Notification.success(
      trans._n(
        '%1 worker has computed a sum in %2 s. Versions fit.',
        '%1 workers have computed a sum in %2 s. Versions fit.',
        told.workers,
        told.seconds
      ),
      { autoClose: 8000 }
    );
  }
}

function stateOf(
  state: IDaskCluster['state'],
  trans: TranslationBundle
): string {
  switch (state) {
    case 'pending':
      return trans.__('Starting');
    case 'running':
      return trans.__('Running');
    case 'stopping':
      return trans.__('Stopping');
    case 'stopped':
      return trans.__('Stopped');
    case 'failed':
      return trans.__('Failed');
  }
}
