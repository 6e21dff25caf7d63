import type { TranslationBundle } from '@jupyterlab/translation';
import { nullTranslator } from '@jupyterlab/translation';
import * as React from 'react';

import { serverNow } from '../api/clock';
import { sentenceOf } from '../api/error';
import type { IObservable } from './observable';

/** Render again whenever the model has changed. */
export function useModel<T extends IObservable>(model: T): T {
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

/** Do something, and say when it could not be done; `onEnd` is called either way. */
export function useAction(
  onEnd: () => void
): [string | null, (work: () => Promise<unknown>) => () => void] {
  const [failure, setFailure] = React.useState<string | null>(null);
  const act = (work: () => Promise<unknown>) => () => {
    void work()
      .then(
        () => setFailure(null),
        error => setFailure(sentenceOf(error))
      )
      .finally(onEnd);
  };
  return [failure, act];
}

/** What components of a page keep there, lest it goes with them. */
export const KeptState = React.createContext<Map<string, unknown>>(new Map());

/** State that is there again when the page is drawn anew, under a name of its own. */
export function useKept<T>(name: string, initial: T): [T, (value: T) => void] {
  const kept = React.useContext(KeptState);
  const [value, setValue] = React.useState(
    kept.has(name) ? (kept.get(name) as T) : initial
  );
  const set = React.useCallback(
    (next: T) => {
      kept.set(name, next);
      setValue(next);
    },
    [kept, name]
  );
  return [value, set];
}

/** Where something that scrolls was, for when it is drawn anew. */
export function useKeptScroll(name: string): React.RefCallback<HTMLElement> {
  const kept = React.useContext(KeptState);
  return React.useCallback(
    (element: HTMLElement | null) => {
      if (element) {
        element.scrollTop = Number(kept.get(name) ?? 0);
        element.onscroll = () => kept.set(name, element.scrollTop);
      }
    },
    [kept, name]
  );
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
