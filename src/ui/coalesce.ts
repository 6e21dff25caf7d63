import type { IDisposable } from '@lumino/disposable';

/**
 * Does some work whenever it is asked to, but never twice at once and never
 * more often than every `interval` milliseconds. What is asked meanwhile is
 * done once, afterwards.
 */
export class Coalesced implements IDisposable {
  constructor(
    private readonly work: () => Promise<unknown>,
    private readonly interval: number
  ) {}

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    this._isDisposed = true;
    window.clearTimeout(this._timer);
  }

  request(): void {
    if (this._isDisposed) {
      return;
    }
    if (this._busy) {
      this._again = true;
      return;
    }
    this._busy = true;
    const wait = Math.max(0, this._earliest - Date.now());
    this._timer = window.setTimeout(() => void this.perform(), wait);
  }

  private async perform(): Promise<void> {
    this._again = false;
    try {
      await this.work();
    } catch (error) {
      console.error(error);
    }
    this._earliest = Date.now() + this.interval;
    this._busy = false;
    if (this._again) {
      this.request();
    }
  }

  private _again = false;
  private _busy = false;
  private _earliest = 0;
  private _isDisposed = false;
  private _timer = 0;
}
