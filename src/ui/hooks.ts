import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';

import { serverNow } from '../api/clock';
import type { Observable } from './observable';

/** Render again whenever the model has changed. */
export function useModel<T extends Observable>(model: T): T {
  const subscribe = React.useCallback(
    (listener: () => void) => {
      model.changed.connect(listener);
      return () => {
        model.changed.disconnect(listener);
      };
    },
    [model]
  );
  React.useSyncExternalStore(subscribe, () => model.version);
  return model;
}

const TranslationContext = React.createContext<TranslationBundle>(
  nullTranslator.load('jupyterlab_convect')
);

export const TranslationProvider = TranslationContext.Provider;

export function useTrans(): TranslationBundle {
  return React.useContext(TranslationContext);
}

const TICK = 1000;
const listeners = new Set<() => void>();
let timer = 0;
let tick = serverNow();

/** What `read` makes of the present time: one clock for all that is on the screen. */
export function useClock<T extends string | number>(
  read: (now: number) => T
): T {
  return React.useSyncExternalStore(listenToClock, () => read(present()));
}

/** The last tick; while nobody listens, nothing ticks. */
function present(): number {
  const now = serverNow();
  if (listeners.size === 0 && Math.abs(now - tick) > TICK / 1000) {
    tick = now;
  }
  return tick;
}

function listenToClock(listener: () => void): () => void {
  if (listeners.size === 0) {
    timer = window.setInterval(() => {
      tick = serverNow();
      listeners.forEach(tell => tell());
    }, TICK);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      window.clearInterval(timer);
    }
  };
}

/** Seconds since 1970, growing every second while `ticking`. */
export function useNow(ticking: boolean): number {
  const [stopped] = React.useState(serverNow);
  return useClock(now => (ticking ? now : stopped));
}
