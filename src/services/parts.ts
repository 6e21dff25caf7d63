import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IPartsContext } from '../lazycommands';
import { fileMeant } from '../ui/filemeant';
import { PageKind } from '../ui/pagekind';
import { makeCallable } from './dialog';
import { EndpointsModel, EndpointsPage } from './page';

/** The page and the dialogs of endpoints, loaded when the first of them is needed. */
export class Parts {
  constructor(private readonly context: IPartsContext) {
    const { api, app, trans } = context;
    const options = { commands: app.commands, trans };
    this._pages = new PageKind(
      app.shell,
      'endpoints',
      async () => new EndpointsPage(new EndpointsModel(api), options)
    );
  }

  async execute(
    command: string,
    args: ReadonlyPartialJSONObject
  ): Promise<void> {
    const { api, app, browser, documents, trans } = this.context;
    if (command === 'convect:make-callable') {
      const path = fileMeant(app, browser, documents, args.path);
      if (!(await makeCallable(api, path, trans))) {
        return;
      }
    }
    (await this._pages.open('all'))?.model.refresh();
  }

  private _pages: PageKind<EndpointsPage>;
}
