import type { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { Message } from '@lumino/messaging';
import type { Widget } from '@lumino/widgets';
import { BoxLayout, BoxPanel, SplitPanel } from '@lumino/widgets';
import * as React from 'react';

import { lazy, loaded } from '../ui/lazy';
import type { Session } from './session';

const BrokenPage = lazy(() => import('./broken'));

/**
 * The content of a pipeline's tab: the canvas with its side panel, or the page
 * that says why there is none.
 */
export class PipelineEditor extends BoxPanel {
  constructor(
    readonly session: Session,
    private readonly rendermime: IRenderMimeRegistry
  ) {
    super({ direction: 'top-to-bottom', spacing: 0 });
    this.addClass('jp-Convect-editor');
    this.node.dataset.convectSession = session.id;
    // JupyterLab's own undo and redo work where this is set.
    this.node.dataset.jpUndoer = 'true';
    this._split.addClass('jp-Convect-split');
    session.doc.changed.connect(this.onChange, this);
    session.state.changed.connect(this.showSide, this);
    this.ready = session.context.ready.then(() => this.present());
  }

  /** There is something to see. */
  readonly ready: Promise<void>;

  override dispose(): void {
    if (!this.isDisposed) {
      this.session.doc.changed.disconnect(this.onChange, this);
      this.session.state.changed.disconnect(this.showSide, this);
      this.session.dispose();
      // Not a child while a page stands in its place.
      this._split.dispose();
      super.dispose();
    }
  }

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    if (!this.isVisible) {
      this.session.isShown = false;
    }
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.session.isShown = true;
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this.session.isShown = false;
  }

  protected override onActivateRequest(msg: Message): void {
    super.onActivateRequest(msg);
    const { activeElement } = document;
    if (activeElement === this.node || !this.node.contains(activeElement)) {
      this.focusCanvas();
    }
  }

  private focusCanvas(): void {
    this.node.querySelector<HTMLElement>('.jp-Convect-canvas')?.focus();
  }

  private onChange(): void {
    if (this.session.context.isReady) {
      void this.present();
    }
  }

  /** Show the page or the canvas, whichever the document allows. */
  private async present(): Promise<void> {
    const { malformed } = this.session.doc;
    if (this.isDisposed || malformed === this._shown) {
      return;
    }
    this._shown = malformed;
    for (const widget of [...this.widgets]) {
      if (widget === this._split) {
        widget.parent = null;
      } else {
        widget.dispose();
      }
    }
    if (malformed) {
      this.addStretched(
        ReactWidget.create(
          <React.Suspense fallback={null}>
            <BrokenPage session={this.session} malformed={malformed} />
          </React.Suspense>
        )
      );
    } else {
      this.addStretched(this._split);
      await this.load();
    }
  }

  private addStretched(widget: Widget): void {
    this.addWidget(widget);
    BoxLayout.setStretch(widget, 1);
  }

  /** The canvas comes in a chunk of its own, with the first pipeline opened. */
  private async load(): Promise<void> {
    const { Canvas, CanvasHost, SidePanel, unfold } = await loaded(
      () => import('./canvas')
    );
    if (this.isDisposed || this._side) {
      return;
    }
    const { rendermime, session } = this;
    session.unfold = unfold;
    const canvas = new CanvasHost(
      session,
      <Canvas session={session} rendermime={rendermime} />
    );
    this._split.addWidget(canvas);
    this._side = ReactWidget.create(<SidePanel session={session} />);
    this._side.addClass('jp-Convect-side');
    this._split.addWidget(this._side);
    this._split.setRelativeSizes([7, 3]);
    this.showSide();
    // The tab may have been given the keyboard before there was a canvas.
    await canvas.renderPromise;
    if (document.activeElement === this.node) {
      this.focusCanvas();
    }
  }

  private showSide(): void {
    const { panel, selection } = this.session.state.value;
    const wasHidden = this._side?.isHidden ?? true;
    this._side?.setHidden(panel === null);
    const [id] = selection;
    if (this._side && wasHidden && panel !== null && id !== undefined) {
      // What is edited stays in sight beside it.
      requestAnimationFrame(() => this.session.canvas?.reveal(id));
    }
  }

  private _shown: unknown = undefined;
  private _side: Widget | null = null;
  private _split = new SplitPanel({ orientation: 'horizontal', spacing: 1 });
}
