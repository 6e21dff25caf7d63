import { ConvectError } from '../../api';
import { Observable } from '../../ui/observable';

const PAUSE = 1000;
/** The longest pause while the server gives no answer. */
const LONGEST_PAUSE = 5000;

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

  /** Read from here on; `grown` says that there was something. */
  protected abstract read(
    offset: number
  ): Promise<{ offset: number; complete: boolean; grown: boolean }>;

  override dispose(): void {
    window.clearTimeout(this._timer);
    super.dispose();
  }

  private async follow(): Promise<void> {
    // The subclass is not built yet.
    await Promise.resolve();
    let offset = 0;
    let pause = PAUSE;
    while (!this.isDisposed && !this._isComplete) {
      let grown = false;
      try {
        const piece = await this.read(offset);
        ({ offset, grown } = piece);
        this._isComplete = piece.complete;
        this._error = null;
        pause = PAUSE;
        this.touch();
      } catch (error) {
        if (!(error instanceof ConvectError)) {
          throw error;
        }
        this._error = error;
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
  private _timer = 0;
}
