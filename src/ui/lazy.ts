import * as React from 'react';

/** How long to wait before a part is asked for again, in ms; after the last it has failed. */
const PAUSES = [500, 1000, 2000, 4000];

/** A part of the program, asked for again while the network is away for a moment. */
export async function loaded<T>(load: () => Promise<T>): Promise<T> {
  for (const pause of PAUSES) {
    try {
      return await load();
    } catch {
      await new Promise(resolve => setTimeout(resolve, pause));
    }
  }
  return load();
}

/** Calls `tell` when a part could not be loaded and nobody has said so. */
export function whenNotLoaded(tell: () => void): void {
  const look = (error: unknown) => {
    const { name, request } = (error ?? {}) as Record<string, unknown>;
    // As the bundler names it; other extensions have their own.
    if (
      name === 'ChunkLoadError' &&
      String(request).includes('/jupyterlab-convect/')
    ) {
      tell();
    }
  };
  window.addEventListener('unhandledrejection', event => look(event.reason));
  window.addEventListener('error', event => look(event.error));
}

/** A component whose part of the program is loaded when it is first drawn. */
export function lazy<P>(
  load: () => Promise<{ default: React.ComponentType<P> }>
): React.LazyExoticComponent<React.ComponentType<P>> {
  return React.lazy(() => loaded(load));
}
