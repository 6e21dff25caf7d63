import type { IDisposable } from '@lumino/disposable';

/**
 * Does some work whenever it is asked to, but never twice at once and, in the
 * long run, never more often than every `interval` milliseconds. What is asked
 * meanwhile is done once, afterwards. After a rest, work for `slack`
 * milliseconds is done without waiting.
 */
export class Coalesced implements IDisposable {
  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly interval: number,
    private readonly slack = 0
  ) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    window.clearTimeout(this._timer);
  }

  /** What `isUrgent` waits only for work that is under way. */
  request(isUrgent = false): void {
    if (this._isDisposed) {
      return;
    }
    this._isUrgent ||= isUrgent;
    if (this._working) {
      this._again = true;
      return;
    }
    if (this._timer && !isUrgent) {
      return;
    }
    window.clearTimeout(this._timer);
    const wait = this._isUrgent ? 0 : this._due - this.slack - Date.now();
    this._timer = window.setTimeout(
      () => void this.perform(),
      Math.max(0, wait)
    );
  }

  private async perform(): Promise<void> {
    this._timer = 0;
    this._working = true;
    this._again = this._isUrgent = false;
    try {
      await this.work();
    } catch (error) {
      console.error(error);
    }
    this._due = Math.max(this._due, Date.now()) + this.interval;
    this._working = false;
    if (this._again) {
      this.request();
    }
  }

  private _again = false;
  private _due = 0;
  private _isDisposed = false;
  private _isUrgent = false;
  private _timer = 0;
  private _working = false;
}
