import { ConvectError } from '../../api';
import { Observable } from '../../ui/observable';

const PAUSE = 1000;
/** The longest pause while the server gives no answer. */
const LONGEST_PAUSE = 5000;

export interface IPiece {
  offset: number;
  complete: boolean;
  grown: boolean;
}

/** Reads something that grows, piece by piece, until it is complete or nobody looks any more. */
export abstract class Tail extends Observable {
  constructor() {
    super();
    void this.follow();
  }

  /** There will be nothing more. */
  get isComplete(): boolean {
    return this._isComplete;
  }

  get error(): ConvectError | null {
    return this._error;
  }

  /** Nobody looks: nothing is read until somebody does again, from where it was. */
  set isPaused(isPaused: boolean) {
    this._isPaused = isPaused;
    if (!isPaused) {
      this._resume();
    }
  }

  /** Read from here on, null at first; `grown` says that there was something. */
  protected abstract read(offset: number | null): Promise<IPiece>;

  override dispose(): void {
    window.clearTimeout(this._timer);
    super.dispose();
    this._resume();
  }

  private async follow(): Promise<void> {
    // The subclass is not built yet.
    await Promise.resolve();
    let offset: number | null = null;
    let pause = PAUSE;
    while (!this.isDisposed && !this._isComplete) {
      let grown = false;
      if (this._isPaused) {
        await new Promise<void>(resolve => (this._resume = resolve));
        continue;
      }
      try {
        const piece: IPiece = await this.read(offset);
        ({ offset, grown } = piece);
        this._isComplete = piece.complete;
        this._error = null;
        pause = PAUSE;
        this.touch();
      } catch (error) {
        // Also what is no answer of ours, like the login page of a hub.
        this._error =
          error instanceof ConvectError
            ? error
            : new ConvectError(String(error), 0, 'unreadable');
        // It is gone, and will not come back.
        this._isComplete = this._error.isMissing;
        pause = Math.min(pause * 2, LONGEST_PAUSE);
        this.touch();
      }
      if (!grown && !this._isComplete) {
        await new Promise(resolve => {
          this._timer = window.setTimeout(resolve, pause);
        });
      }
    }
  }

  private _error: ConvectError | null = null;
  private _isComplete = false;
  private _isPaused = false;
  private _resume: () => void = () => undefined;
  private _timer = 0;
}
