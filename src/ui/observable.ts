import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/** State that components show: they read it again whenever it has changed. */
export abstract class Observable implements IDisposable {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Grows with every change. */
  get version(): number {
    return this._version;
  }

  get isDisposed(): boolean {
    return this._isDisposed;
  }

  dispose(): void {
    if (this._isDisposed) {
      return;
    }
    this._isDisposed = true;
    Signal.clearData(this);
  }

  /** Say that something has changed. */
  protected touch(): void {
    if (!this._isDisposed) {
      this._version += 1;
      this._changed.emit();
    }
  }

  private _changed = new Signal<this, void>(this);
  private _isDisposed = false;
  private _version = 0;
}
