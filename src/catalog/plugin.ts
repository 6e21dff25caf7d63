import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { IDocumentManager } from '@jupyterlab/docmanager';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { CATEGORY, takes } from '../commands';
import { IConvectApi } from '../tokens';
import { loaded } from '../ui/lazy';
import type { CatalogActions } from './actions';
import { addCatalogCommands } from './commands';
import { CatalogCommands, KINDS } from './ids';
import { componentIcon } from './icons';
import { CatalogModel } from './model';
import { CatalogPanel } from './panel';

const catalog: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:catalog',
  description: 'Lists ready-made components and the catalogs they come from.',
  autoStart: true,
  requires: [IConvectApi, IDocumentManager],
  optional: [ICommandPalette, ILayoutRestorer, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    documents: IDocumentManager,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    translator: ITranslator | null
  ) => {
    const language = translator ?? nullTranslator;
    const trans = language.load('jupyterlab_convect');
    const model = new CatalogModel(api);
    let actions: CatalogActions | null = null;
    addCatalogCommands(app, trans, async () => {
      const { CatalogActions } = await loaded(() => import('./actions'));
      return (actions ??= new CatalogActions(app, model, documents, trans));
    });

    const panel = new CatalogPanel({
      model,
      commands: app.commands,
      translator: language,
      trans
    });
    panel.id = 'jp-convect-components';
    panel.title.icon = componentIcon;
    panel.title.caption = trans.__('Components');
    app.shell.add(panel, 'left', { rank: 310, type: 'Convect' });
    restorer?.add(panel, panel.id);

    app.commands.addCommand(CatalogCommands.show, {
      label: trans.__('Show Components'),
      caption: trans.__('Show ready-made components and their catalogs'),
      icon: componentIcon,
      describedBy: takes(),
      execute: () => app.shell.activateById(panel.id)
    });
    palette?.addItem({ command: CatalogCommands.show, category: CATEGORY });
    for (const kind of KINDS) {
      palette?.addItem({
        command: CatalogCommands.newCatalog,
        category: CATEGORY,
        args: { kind }
      });
    }
  }
};

export const catalogPlugins = [catalog];
