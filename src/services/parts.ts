import { Notification } from '@jupyterlab/apputils';
import type { JSONObject, ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IService } from '../api';
import { sentenceOf } from '../api';
import type { Widget } from '@lumino/widgets';

import { CommandIDs } from '../commands';
import type { IPartsContext } from '../lazycommands';
import { fileMeant } from '../ui/filemeant';
import type { PageKind } from '../ui/pagekind';
import { DaskModel, DaskPage, plotPage } from './dask';
import { makeCallable } from './dialog';
import { ServiceModel, ServicePage } from './opened';
import { EndpointsModel, EndpointsPage } from './page';

/** The pages and the dialogs of endpoints and services, loaded when the first is needed. */
export class Parts {
  constructor(private readonly context: IPartsContext) {
    this._pages = context.pages.endpoints as PageKind<EndpointsPage>;
    this._services = context.pages.service as PageKind<ServicePage>;
  }

  async page(id: string, kind: string): Promise<Widget> {
    const { api, app, trans } = this.context;
    const options = { commands: app.commands, trans };
    if (kind === 'daskplot') {
      return plotPage(api, id, options);
    }
    if (kind === 'dask') {
      const openPlot = async (plot: string) =>
        this.context.pages.daskplot.open(plot);
      return new DaskPage(new DaskModel(api, app, openPlot), options);
    }
    return kind === 'service'
      ? new ServicePage(new ServiceModel(api, await api.service(id)), options)
      : new EndpointsPage(new EndpointsModel(api), options);
  }

  async execute(
    command: string,
    args: ReadonlyPartialJSONObject
  ): Promise<void> {
    const { api, app, browser, documents, trans } = this.context;
    if (command === CommandIDs.openTensorBoard) {
      return this.openTensorBoard(args);
    }
    if (command === 'convect:show-dask') {
      await this.context.pages.dask.open('all');
      return;
    }
    if (command === 'convect:make-callable') {
      const path = fileMeant(app, browser, documents, args.path);
      if (!(await makeCallable(api, path, trans))) {
        return;
      }
    }
    (await this._pages.open('all'))?.model.refresh();
  }

  /** TensorBoard over the runs or the sweep that are named, else over a folder. */
  private async openTensorBoard({
    runs,
    sweep,
    path
  }: ReadonlyPartialJSONObject): Promise<void> {
    const { api, trans } = this.context;
    const options: JSONObject = Array.isArray(runs)
      ? { runs: runs.map(String) }
      : sweep !== undefined
        ? { sweep: String(sweep) }
        : { folder: path === undefined ? this.folder() : String(path) };
    let service: IService;
    try {
      service = await api.startService({ kind: 'tensorboard', options });
    } catch (error) {
      Notification.error(sentenceOf(error), { autoClose: 8000 });
      return;
    }
    const page = await this._services.open(service.id);
    page?.model.look();
    if (page === null) {
      Notification.info(trans.__('%1 is starting…', service.name));
    }
  }

  /** The folder that is selected in the file browser, else the one that it shows. */
  private folder(): string {
    const { app, browser } = this.context;
    const selected = browser?.selectedItems().next().value;
    const path =
      selected?.type === 'directory' ? selected.path : browser?.model.path;
    return app.serviceManager.contents.localPath(path ?? '') || '.';
  }

  private _pages: PageKind<EndpointsPage>;
  private _services: PageKind<ServicePage>;
}
