import type { JupyterFrontEnd } from '@jupyterlab/application';
import { MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import type { DocumentRegistry } from '@jupyterlab/docregistry';
import type { Widget } from '@lumino/widgets';

import { loaded } from './lazy';

/** Less than that is too little for two documents side by side. */
const WIDE = 1200;

/** Pages of one kind in the main area, one for each id, made when it is first opened. */
export class PageKind<T extends Widget> {
  constructor(
    private readonly shell: JupyterFrontEnd.IShell,
    private readonly kind: string,
    private readonly make: (id: string) => Promise<T>,
    /** Where else it can be seen, for a shell that shows one document and nothing beside it. */
    private readonly link: (id: string) => string | null = () => null
  ) {
    this.tracker = new WidgetTracker({ namespace: `convect-${kind}` });
  }

  readonly tracker: WidgetTracker<MainAreaWidget<T>>;

  /** Null when it was opened in another tab of the browser. */
  async open(
    id: string,
    options?: DocumentRegistry.IOpenOptions
  ): Promise<T | null> {
    let opened = this._pages.get(id);
    if (!opened) {
      opened = this.create(id, options);
      this._pages.set(id, opened);
      opened.catch(() => this._pages.delete(id));
    }
    const page = await opened;
    // The shell of Jupyter Notebook leaves out what it has no place for.
    if (!page.isAttached) {
      page.dispose();
      window.open(this.link(id) ?? undefined);
      return null;
    }
    this.shell.activateById(page.id);
    return page.content;
  }

  idOf(page: MainAreaWidget<T>): string {
    return this._ids.get(page) ?? '';
  }

  private async create(
    id: string,
    options?: DocumentRegistry.IOpenOptions
  ): Promise<MainAreaWidget<T>> {
    const content = await loaded(() => this.make(id));
    const page = new MainAreaWidget({ content });
    // What can be done is in the page itself.
    page.toolbar.hide();
    page.id = `jp-convect-${this.kind}-${id.replace(/[^\w-]/g, '-')}`;
    page.disposed.connect(() => this._pages.delete(id));
    this._ids.set(page, id);
    this.shell.add(page, 'main', { type: 'Convect', ...options });
    await this.tracker.add(page);
    return page;
  }

  private _ids = new WeakMap<MainAreaWidget<T>, string>();
  private _pages = new Map<string, Promise<MainAreaWidget<T>>>();
}

/**
 * Where a page goes that is opened beside what is looked at: to another one of ours that is in
 * sight, or could be beside it, else to the right, where there is room for both.
 */
export function beside(
  shell: JupyterFrontEnd.IShell,
  pages: readonly Widget[]
): DocumentRegistry.IOpenOptions {
  const current = shell.currentWidget;
  const other =
    pages.find(page => page.isVisible) ??
    pages.find(page => current && areApart(page, current));
  if (other) {
    return { mode: 'tab-after', ref: other.id };
  }
  return current && window.innerWidth >= WIDE
    ? { mode: 'split-right', ref: current.id }
    : {};
}

/** Whether two tabs are in different rows of tabs. */
function areApart(one: Widget, other: Widget): boolean {
  const [bar, otherBar] = [one, other].map(({ id }) =>
    document
      .querySelector(`.lm-DockPanel-tabBar [data-id="${CSS.escape(id)}"]`)
      ?.closest('.lm-DockPanel-tabBar')
  );
  return !!bar && !!otherBar && bar !== otherBar;
}
