import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';
import * as React from 'react';

/** A value that changes as a whole and says so. */
export class Store<T extends object> {
  constructor(private _value: T) {}

  get value(): T {
    return this._value;
  }

  get changed(): ISignal<this, T> {
    return this._changed;
  }

  update(patch: Partial<T>): void {
    const keys = Object.keys(patch) as (keyof T)[];
    if (keys.some(key => this._value[key] !== patch[key])) {
      this._value = { ...this._value, ...patch };
      this._changed.emit(this._value);
    }
  }

  dispose(): void {
    Signal.clearData(this);
  }

  private _changed = new Signal<this, T>(this);
}

/** The part of a store that a component shows. `select` must give stable values. */
export function useStore<T extends object, S>(
  store: Store<T>,
  select: (value: T) => S
): S {
  const subscribe = React.useCallback(
    (listener: () => void) => {
      store.changed.connect(listener);
      return () => {
        store.changed.disconnect(listener);
      };
    },
    [store]
  );
  return React.useSyncExternalStore(subscribe, () => select(store.value));
}

/** What a signal's sender has now, read again whenever it signals. */
export function useSignal<S>(
  signal: ISignal<unknown, unknown>,
  read: () => S
): S {
  const subscribe = React.useCallback(
    (listener: () => void) => {
      signal.connect(listener);
      return () => {
        signal.disconnect(listener);
      };
    },
    [signal]
  );
  return React.useSyncExternalStore(subscribe, read);
}
