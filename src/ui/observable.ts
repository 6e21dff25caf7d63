import type { IDisposable } from '@lumino/disposable';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/** State that components show: they read it again whenever it has changed. */
export interface IObservable {
  readonly changed: ISignal<unknown, void>;
  /** Grows with every change. */
  readonly version: number;
}

export abstract class Observable implements IObservable, IDisposable {
  get changed(): ISignal<this, void> {
    return this._changed;
  }

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

/** State of a page, which asks for nothing while nobody sees it. */
export abstract class PageModel extends Observable {
  get isShown(): boolean {
    return this._isShown;
  }

  /** The page has come into sight, or out of it. */
  setShown(isShown: boolean): void {
    if (isShown !== this._isShown && !this.isDisposed) {
      this._isShown = isShown;
      this.onShown?.(isShown);
      this.touch();
    }
  }

  protected onShown?(isShown: boolean): void;

  private _isShown = false;
}
