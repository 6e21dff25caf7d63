import { DocumentWidget } from '@jupyterlab/docregistry';
import type { Message } from '@lumino/messaging';
import { MessageLoop } from '@lumino/messaging';
import { Debouncer } from '@lumino/polling';
import { Widget } from '@lumino/widgets';

import type { PipelineModel } from './documentmodel';
import type { PipelineEditor } from './editor';

/** How long a tab has to keep its size before it counts as settled, in ms. */
const SETTLED = 1000;

/** A pipeline's tab. */
export class PipelineWidget extends DocumentWidget<
  PipelineEditor,
  PipelineModel
> {
  override dispose(): void {
    this._arrange.dispose();
    super.dispose();
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    void this._arrange.invoke();
  }

  protected override onResize(msg: Widget.ResizeMessage): void {
    super.onResize(msg);
    void this._arrange.invoke();
  }

  /**
   * JupyterLab's toolbar does not hear of a new width while it moves its
   * buttons to its popup, and leaves them there: it is told once more.
   */
  private _arrange = new Debouncer(() => {
    const { clientWidth, clientHeight } = this.toolbar.node;
    const message = new Widget.ResizeMessage(clientWidth, clientHeight);
    MessageLoop.sendMessage(this.toolbar, message);
  }, SETTLED);
}
