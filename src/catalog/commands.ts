import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { addIcon } from '@jupyterlab/ui-components';

import { sentenceOf } from '../api';
import { takes } from '../commands';
import type { CatalogActions } from './actions';
import { CatalogCommands } from './ids';

type Texts = { [name: string]: string };

/** What one command is; every argument is a text, and its value here says what it means. */
interface ICatalogCommand {
  label: string;
  args: Texts;
  execute: (actions: CatalogActions, args: Texts) => Promise<unknown>;
}

/** Commands whose work is loaded with their first use. */
export function addCatalogCommands(
  app: JupyterFrontEnd,
  trans: TranslationBundle,
  load: () => Promise<CatalogActions>
): void {
  for (const [id, command] of Object.entries(catalogCommands(trans))) {
    app.commands.addCommand(id, {
      label: ({ kind }) =>
        kind ? newCatalogLabel(String(kind), trans) : command.label,
      icon: ({ kind }) => (kind ? addIcon : undefined),
      describedBy: takes(command.args),
      execute: async args => {
        try {
          const actions = await load();
          await command.execute(actions, { ...meant(app), ...(args as Texts) });
        } catch (error) {
          Notification.error(sentenceOf(error), { autoClose: 8000 });
        }
      }
    });
  }
}

function catalogCommands(trans: TranslationBundle): {
  [id: string]: ICatalogCommand;
} {
  const catalog = trans.__('The id of the catalog');
  const digest = trans.__('The digest of the component');
  return {
    [CatalogCommands.newCatalog]: {
      label: trans.__('New Component Catalog'),
      args: { kind: trans.__('url, file or folder') },
      execute: (actions, args) => actions.create(args.kind ?? 'url')
    },
    [CatalogCommands.editCatalog]: {
      label: trans.__('Configure Catalog…'),
      args: { catalog },
      execute: (actions, args) => actions.configure(args.catalog)
    },
    [CatalogCommands.refreshCatalog]: {
      label: trans.__('Refresh Catalog'),
      args: { catalog },
      execute: (actions, args) => actions.refresh(args.catalog)
    },
    [CatalogCommands.removeCatalog]: {
      label: trans.__('Remove Catalog'),
      args: { catalog },
      execute: (actions, args) => actions.remove(args.catalog)
    },
    [CatalogCommands.showUpdates]: {
      label: trans.__('Show Updates…'),
      args: {
        catalog,
        update: trans.__('The digest of one update; else all')
      },
      execute: (actions, args) =>
        actions.chooseUpdates(args.catalog, args.update)
    },
    [CatalogCommands.addToPipeline]: {
      label: trans.__('Add to Pipeline'),
      args: { catalog, digest },
      execute: (actions, args) =>
        actions.addToPipeline(args.digest, args.catalog)
    },
    [CatalogCommands.approve]: {
      label: trans.__('Approve to Run without a Container…'),
      args: {
        digest,
        definition: trans.__('Its definition, as JSON, if no catalog has it')
      },
      execute: (actions, args) =>
        args.definition
          ? actions.approveDefinition(JSON.parse(args.definition))
          : actions.approve(args.digest)
    }
  };
}

/** The component or catalog that a context menu was opened on. */
function meant(app: JupyterFrontEnd): Texts {
  const node = app.contextMenuHitTest(
    item => !!item.dataset.digest || !!item.dataset.catalog
  );
  const { digest, catalog } = node?.dataset ?? {};
  return { ...(digest && { digest }), ...(catalog && { catalog }) };
}

export function newCatalogLabel(
  kind: string,
  trans: TranslationBundle
): string {
  switch (kind) {
    case 'url':
      return trans.__('New URL Component Catalog');
    case 'file':
      return trans.__('New File Component Catalog');
    case 'folder':
      return trans.__('New Folder Component Catalog');
    default:
      return trans.__('New %1 Component Catalog', kind);
  }
}
