import type { IPartsContext } from '../lazycommands';
import type { PageKind } from '../ui/pagekind';
import { ClusterModel } from './model';
import { ClusterPage } from './page';

/** The page, loaded when it is first opened. */
export class Parts {
  constructor(private readonly context: IPartsContext) {
    this._pages = context.pages.cluster as PageKind<ClusterPage>;
  }

  async page(): Promise<ClusterPage> {
    const { api, app, trans } = this.context;
    return new ClusterPage(new ClusterModel(api), {
      commands: app.commands,
      trans
    });
  }

  async execute(): Promise<void> {
    (await this._pages.open('all'))?.model.refresh();
  }

  private _pages: PageKind<ClusterPage>;
}
