import type { IDisposable } from '@lumino/disposable';
import { Poll } from '@lumino/polling';

import type { Session } from './session';

/** How often to look whether somebody else has written the file, in ms. */
const INTERVAL = 5000;

/**
 * Notices when the file changes on the disk. Without changes of one's own it is
 * taken over; else it is offered (the server does that for a shared document).
 * Notices, too, when the files of its nodes change or go.
 */
export class OutsideWatch implements IDisposable {
  constructor(
    private readonly session: Pick<
      Session,
      'context' | 'contents' | 'files' | 'isShown' | 'reload' | 'state'
    >
  ) {
    this._poll = new Poll({
      name: 'jupyterlab-convect:outside',
      auto: false,
      factory: () => this.look(),
      frequency: { interval: INTERVAL, backoff: true, max: 60000 },
      standby: 'when-hidden'
    });
    void session.context.ready.then(() => {
      if (!this.isDisposed) {
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

  /** Look soon. */
  request(): void {
    if (!this.isDisposed) {
      this._poll.refresh().catch(() => undefined);
    }
  }

  /** Look once. */
  async look(): Promise<void> {
    const { context, contents, state } = this.session;
    if (!this.session.isShown) {
      return;
    }
    this.session.files.request();
    if (context.model.collaborative) {
      return;
    }
    const known = context.contentsModel?.hash;
    const now = await contents.get(context.path, {
      content: false,
      hash: true
    });
    // The same content may come back after the file was saved here.
    const difference = `${known} ${now.hash}`;
    const isChanged =
      !!known && !!now.hash && known !== now.hash && difference !== this._seen;
    if (this.isDisposed || !isChanged) {
      return;
    }
    if (known !== context.contentsModel?.hash) {
      return; // It was saved here in the meantime.
    }
    this._seen = difference;
    if (context.model.dirty) {
      state.update({ isChangedOutside: true });
    } else {
      await this.session.reload();
    }
  }

  private _poll: Poll;
  private _seen: string | undefined;
}
