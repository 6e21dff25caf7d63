import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { DocumentWidget } from '@jupyterlab/docregistry';
import { FileDialog } from '@jupyterlab/filebrowser';
import type { TranslationBundle } from '@jupyterlab/translation';

import '../../style/catalog.css';
import { sentenceOf } from '../api';
import { EditorCommands } from '../pipeline/ids';
import { askApproval, askWithdrawal } from './approval';
import { CatalogCommands } from './ids';
import { dropOf } from './drag';
import { CatalogForm } from './form';
import { askCatalog } from './formdialog';
import type { CatalogModel } from './model';
import type { ICatalog, IComponent, IDefinition } from './types';
import { chooseUpdates } from './updates';

/** What the commands do. Errors are for the one who calls. */
export class CatalogActions {
  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly model: CatalogModel,
    private readonly documents: IDocumentManager,
    private readonly trans: TranslationBundle
  ) {}

  async create(kind: string): Promise<void> {
    const { api } = this.model;
    const form = new CatalogForm(
      kind,
      this.trans,
      ({ auth, ...value }) => api.addCatalog(auth ? { auth, ...value } : value),
      null,
      this.model.schemaOf(kind)
    );
    if (kind === 'file' || kind === 'folder') {
      const path = await this.browse(kind);
      if (path === null) {
        return;
      }
      form.set({ path, name: PathExt.basename(path, PathExt.extname(path)) });
    }
    const catalog = await askCatalog(form);
    if (catalog) {
      await this.app.commands.execute(CatalogCommands.show);
      await this.follow(catalog);
    }
  }

  async configure(id: string): Promise<void> {
    const catalog = this.known(id);
    const form = new CatalogForm(
      catalog.kind,
      this.trans,
      value => {
        const change: Partial<typeof value> = { ...value };
        delete change.kind;
        return this.model.api.updateCatalog(id, change);
      },
      catalog,
      this.model.schemaOf(catalog.kind)
    );
    const changed = await askCatalog(form);
    if (changed) {
      await this.follow(changed);
    }
  }

  async refresh(id: string): Promise<void> {
    await this.follow(await this.model.api.refreshCatalog(id));
  }

  async remove(id: string): Promise<void> {
    const { trans } = this;
    const result = await showDialog({
      title: trans.__('Remove %1', this.known(id).name),
      body: trans.__(
        'Its components leave the panel. Pipelines that use them keep working.'
      ),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Remove') })
      ]
    });
    if (result.button.accept) {
      await this.model.remove(id);
    }
  }

  /** Show what updates change, and take those that are wanted. */
  async chooseUpdates(id: string, update?: string): Promise<void> {
    const entries = this.model.entries.filter(
      entry =>
        entry.catalog === id &&
        entry.update &&
        (!update || entry.update === update)
    );
    const chosen = await chooseUpdates(entries, this.model.api, this.trans);
    if (chosen?.length) {
      await this.model.take(id, chosen);
    }
  }

  /** Put a component into the pipeline that is open, or else into a new one. */
  async addToPipeline(digest: string, catalog?: string): Promise<void> {
    const { commands } = this.app;
    const entry = this.model.entries.find(
      item => item.digest === digest && (!catalog || item.catalog === catalog)
    );
    if (!digest || !entry) {
      return;
    }
    const component = await dropOf(this.model, entry);
    if (!commands.isEnabled(EditorCommands.addComponent)) {
      const widget: DocumentWidget = await commands.execute(
        EditorCommands.create
      );
      await widget.revealed;
    }
    await commands.execute(EditorCommands.addComponent, { component });
  }

  /** Let a component run without a container once its command was seen, or no longer. */
  async approve(digest: string): Promise<void> {
    await this.askAbout(await this.model.component(digest));
  }

  /** The same for a definition that a pipeline brings along. */
  async approveDefinition(definition: IDefinition): Promise<void> {
    await this.askAbout(await this.model.api.previewComponent({ definition }));
  }

  private async askAbout(component: IComponent): Promise<void> {
    const { definition, approved } = component;
    const isSure = approved
      ? await askWithdrawal(definition, this.trans)
      : await askApproval(definition, this.trans);
    if (isSure) {
      await this.model.approve(component, !approved);
    }
  }

  /** Wait until a catalog has been read, and tell what came of it. */
  private async follow(begun: ICatalog): Promise<void> {
    const { trans, model } = this;
    const before = model.lookedAt;
    const catalog = await model.follow(begun);
    if (!catalog) {
      return;
    }
    const { name, counts, error } = catalog;
    // Unless somebody looks at something else by now.
    if (begun.refreshed === null && model.lookedAt === before) {
      model.reveal(catalog.id);
    }
    if (error) {
      const [why, what] = [error.message, error.hint ?? ''].map(sentenceOf);
      Notification.error(`${name}: ${why} ${what}`, {
        autoClose: false
      });
    } else if (counts.errors > 0) {
      Notification.warning(
        trans._n(
          '%2: %1 component could not be read. The panel says why.',
          '%2: %1 components could not be read. The panel says why.',
          counts.errors,
          name
        ),
        { autoClose: 10000 }
      );
    } else {
      Notification.success(
        counts.updates > 0
          ? trans._n('%2: %1 update', '%2: %1 updates', counts.updates, name)
          : trans._n(
              '%2: %1 component',
              '%2: %1 components',
              counts.components,
              name
            ),
        { autoClose: 4000 }
      );
    }
  }

  /** Choose a file or a folder; null when nobody wants to. */
  private async browse(kind: 'file' | 'folder'): Promise<string | null> {
    const { trans } = this;
    const options = { manager: this.documents };
    const result =
      kind === 'file'
        ? await FileDialog.getOpenFiles({
            ...options,
            title: trans.__('Choose a component or a list of components'),
            filter: item =>
              item.type === 'directory' || isComponentFile(item.path)
                ? {}
                : null
          })
        : await FileDialog.getExistingDirectory({
            ...options,
            title: trans.__('Choose a folder of components')
          });
    const path = result.value?.[0]?.path;
    return result.button.accept && path !== undefined
      ? this.app.serviceManager.contents.localPath(path) || '.'
      : null;
  }

  private known(id: string): ICatalog {
    const catalog = this.model.catalog(id);
    if (!catalog) {
      throw new Error(this.trans.__('There is no catalog “%1”.', id));
    }
    return catalog;
  }
}

function isComponentFile(path: string): boolean {
  return /\.(ya?ml|json|txt)$/i.test(path);
}
