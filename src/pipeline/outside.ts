import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import type { Session } from './session';

/** How often to look whether somebody else has written the file, in ms. */
const INTERVAL = 5000;

/**
 * Notices when the file changes on the disk. Without changes of one's own it is
 * taken over; else it is offered. A shared document needs none of this: the
 * server does it.
 */
export class OutsideWatch implements IDisposable {
  constructor(private readonly session: Session) {
    this._poll = new Poll({
      name: 'jupyterlab-convect:outside',
      auto: false,
      factory: () => this.look(),
      frequency: { interval: INTERVAL, backoff: true, max: 60000 },
      standby: 'when-hidden'
    });
    void session.context.ready.then(() => {
      if (!this.isDisposed && !session.context.model.collaborative) {
        void this._poll.start();
      }
    });
  }

  get isDisposed(): boolean {
    return this._poll.isDisposed;
  }

  dispose(): void {
    this._poll.dispose();
  }

  private async look(): Promise<void> {
    const { context, contents, state } = this.session;
    const known = context.contentsModel?.hash;
    const now = await contents.get(context.path, {
      content: false,
      hash: true
    });
    const isChanged =
      !!known && !!now.hash && known !== now.hash && now.hash !== this._seen;
    if (this.isDisposed || !isChanged) {
      return;
    }
    if (known !== context.contentsModel?.hash) {
      return; // It was saved here in the meantime.
    }
    this._seen = now.hash;
    if (context.model.dirty) {
      state.update({ isChangedOutside: true });
    } else {
      await this.session.reload();
    }
  }

  private _poll: Poll;
  private _seen: string | undefined;
}
