import { useStore } from '@xyflow/react';

/** Zoomed out further than this, details could not be read: names take their room. */
const FAR = 0.5;
/** And from here on lines would be thinner than they can be seen. */
const FARTHEST = 0.2;

/** The classes of a canvas that is looked at from where it is now. */
export function useDistance(): string {
  return useStore(({ transform: [, , zoom] }) =>
    zoom < FARTHEST
      ? 'jp-mod-far jp-mod-farthest'
      : zoom < FAR
        ? 'jp-mod-far'
        : ''
  );
}
