import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  PanelWithToolbar,
  ReactWidget,
  SidePanel,
  ToolbarButton
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Message } from '@lumino/messaging';
import type { AccordionPanel } from '@lumino/widgets';
import { Menu } from '@lumino/widgets';
import * as React from 'react';

import type { Execute } from '../ui';
import { TranslationProvider } from '../ui/hooks';
import { lazy } from '../ui/lazy';
import { CatalogCommands } from './ids';
import type { CatalogModel } from './model';
import type { IEntry } from './types';

const ComponentsView = lazy(() => import('./components'));
const PreviewView = lazy(() => import('./preview'));
const CatalogsView = lazy(() => import('./catalogs'));

/** How the height is shared between the list, the preview and the catalogs. */
const SHARES = [4, 3, 3];

export interface ICatalogPanelOptions {
  model: CatalogModel;
  commands: CommandRegistry;
  translator: ITranslator;
  trans: TranslationBundle;
}

/** Components and their catalogs, in the side bar. It asks nothing before it is first shown. */
export class CatalogPanel extends SidePanel {
  constructor(private readonly options: ICatalogPanelOptions) {
    super({ translator: options.translator });
    this.addClass('jp-Convect-catalogPanel');
    const { model, trans } = options;
    const execute: Execute = (command, args) =>
      void options.commands.execute(
        command,
        args as ReadonlyPartialJSONObject | undefined
      );
    const add = ({ digest, catalog }: IEntry) =>
      execute(CatalogCommands.addToPipeline, { digest, catalog });

    this.addSection(
      trans.__('Components'),
      <ComponentsView model={model} actions={{ add }} />
    );
    this.addSection(
      trans.__('Preview'),
      <PreviewView
        model={model}
        actions={{
          add,
          approve: ({ digest }) => execute(CatalogCommands.approve, { digest }),
          showUpdates: ({ catalog, update }) =>
            execute(CatalogCommands.showUpdates, { catalog, update })
        }}
      />
    );
    const catalogs = this.addSection(
      trans.__('Catalogs'),
      <CatalogsView model={model} execute={execute} />
    );
    catalogs.toolbar.addItem('new', this.newButton());
    (this.content as AccordionPanel).setRelativeSizes(SHARES);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.options.model.isShown = true;
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this.options.model.isShown = false;
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    this.node.querySelector<HTMLElement>('input[type="search"]')?.focus();
  }

  private addSection(title: string, content: JSX.Element): PanelWithToolbar {
    const section = new PanelWithToolbar();
    section.title.label = title;
    section.addClass('jp-Convect-panelSection');
    const view = ReactWidget.create(
      <TranslationProvider value={this.options.trans}>
        <React.Suspense fallback={null}>{content}</React.Suspense>
      </TranslationProvider>
    );
    view.addClass('jp-Convect-panelView');
    section.addWidget(view);
    this.addWidget(section);
    return section;
  }

  private newButton(): ToolbarButton {
    const { commands, model, trans } = this.options;
    const menu = new Menu({ commands });
    this.disposed.connect(() => menu.dispose());
    const button = new ToolbarButton({
      icon: addIcon,
      tooltip: trans.__('New component catalog'),
      onClick: () => {
        menu.clearItems();
        for (const kind of model.kinds) {
          menu.addItem({ command: CatalogCommands.newCatalog, args: { kind } });
        }
        const { left, bottom } = button.node.getBoundingClientRect();
        menu.open(left, bottom);
      }
    });
    return button;
  }
}
