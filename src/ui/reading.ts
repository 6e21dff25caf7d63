import { Poll } from '@lumino/polling';

import { Coalesced } from './coalesce';
import { PageModel } from './observable';

/** State of a page that is read again slowly, and when it is told to, while somebody looks. */
export abstract class ReadModel extends PageModel {
  /** `pause` is the time between two looks, in milliseconds; `quickest` when it is told to. */
  constructor(pause: number, quickest = 1000) {
    super();
    this._read = new Coalesced(
      () => this.attempt(() => this.load()),
      quickest,
      quickest
    );
    this._poll = new Poll({
      auto: false,
      factory: async () => this.refresh(),
      frequency: { interval: pause, backoff: false },
      standby: 'when-hidden'
    });
  }

  /** Why what is shown could not be read, or something else not be done. */
  get error(): unknown {
    return this._error;
  }

  refresh(): void {
    if (this.isShown) {
      this._read.request();
    }
  }

  override dispose(): void {
    this._poll.dispose();
    this._read.dispose();
    super.dispose();
  }

  protected override onShown(isShown: boolean): void {
    if (isShown) {
      this._read.request();
      void this._poll.start();
    } else {
      void this._poll.stop();
    }
  }

  protected abstract load(): Promise<void>;

  /** Do something that may fail, and say so. */
  protected async attempt(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this._error = null;
    } catch (error) {
      this._error = error;
    }
    this.touch();
  }

  private _error: unknown = null;
  private _poll: Poll;
  private _read: Coalesced;
}
