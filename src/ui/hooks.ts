import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';

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

const CLOCK = 10000;
const listeners = new Set<() => void>();
let clock = 0;

/** Render again every few seconds, together with all others that do. */
export function useClock(): void {
  React.useSyncExternalStore(listenToClock, () =>
    Math.floor(Date.now() / CLOCK)
  );
}

function listenToClock(listener: () => void): () => void {
  if (listeners.size === 0) {
    clock = window.setInterval(() => listeners.forEach(tell => tell()), CLOCK);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      window.clearInterval(clock);
    }
  };
}

/** Seconds since 1970, growing every second while `ticking`. */
export function useNow(ticking: boolean): number {
  const [now, setNow] = React.useState(() => Date.now() / 1000);
  React.useEffect(() => {
    if (!ticking) {
      return;
    }
    const timer = window.setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => window.clearInterval(timer);
  }, [ticking]);
  return now;
}
