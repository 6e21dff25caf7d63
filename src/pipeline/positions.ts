import type { IBox, IPoint } from './graph';
import { moved } from './graph';
import type { PipelineDoc } from './model';

export type Alignment =
  'left' | 'center' | 'right' | 'top' | 'middle' | 'bottom' | 'across' | 'down';

/** Write new places, as one step. */
export function move(
  doc: PipelineDoc,
  places: ReadonlyMap<string, IPoint>,
  gesture?: string
): void {
  if (places.size === 0) {
    return;
  }
  doc.edit(draft => {
    for (const [id, point] of places) {
      draft.put('layout', id, moved(doc.snapshot.layout?.[id], point));
    }
  }, gesture);
}

/** Where boxes go to be in line, or (`across`, `down`) at even distances. */
export function align(
  boxes: ReadonlyMap<string, IBox>,
  how: Alignment
): Map<string, IPoint> {
  const all = [...boxes.entries()];
  const left = Math.min(...all.map(([, box]) => box.x));
  const top = Math.min(...all.map(([, box]) => box.y));
  const right = Math.max(...all.map(([, box]) => box.x + box.width));
  const bottom = Math.max(...all.map(([, box]) => box.y + box.height));
  if (how === 'across' || how === 'down') {
    return distribute(all, how, how === 'across' ? right - left : bottom - top);
  }
  const place = (box: IBox): IPoint => {
    switch (how) {
      case 'left':
        return { x: left, y: box.y };
      case 'right':
        return { x: right - box.width, y: box.y };
      case 'center':
        return { x: (left + right - box.width) / 2, y: box.y };
      case 'top':
        return { x: box.x, y: top };
      case 'bottom':
        return { x: box.x, y: bottom - box.height };
      case 'middle':
        return { x: box.x, y: (top + bottom - box.height) / 2 };
    }
  };
  return new Map(all.map(([id, box]) => [id, place(box)]));
}

/** Room for what is not known of a box yet, such as its ports. */
const ROOM = { x: 40, y: 60 };

/** Where boxes go that come from a tool with smaller ones: further apart, in the same places. */
export function spreadOut(
  boxes: ReadonlyMap<string, IBox>
): Map<string, IPoint> {
  const all = [...boxes];
  const overlap = (factor: number) =>
    all.some(([, one], index) =>
      all
        .slice(index + 1)
        .some(
          ([, two]) =>
            Math.abs(one.x - two.x) * factor <
              (one.x < two.x ? one : two).width + ROOM.x &&
            Math.abs(one.y - two.y) * factor <
              (one.y < two.y ? one : two).height + ROOM.y
        )
    );
  // What lies in one place stays there, however far.
  const factor = [1, 1.25, 1.5, 2, 2.5, 3].find(each => !overlap(each)) ?? 2;
  return new Map(
    factor === 1
      ? []
      : all.map(([id, { x, y }]) => [
          id,
          { x: Math.round(x * factor), y: Math.round(y * factor) }
        ])
  );
}

function distribute(
  all: [string, IBox][],
  how: 'across' | 'down',
  space: number
): Map<string, IPoint> {
  const [axis, size] =
    how === 'across' ? (['x', 'width'] as const) : (['y', 'height'] as const);
  const sorted = [...all].sort(([, a], [, b]) => a[axis] - b[axis]);
  const filled = sorted.reduce((sum, [, box]) => sum + box[size], 0);
  const gap = (space - filled) / Math.max(1, sorted.length - 1);
  let next = sorted[0][1][axis];
  return new Map(
    sorted.map(([id, box]) => {
      const point = { x: box.x, y: box.y, [axis]: next };
      next += box[size] + gap;
      return [id, point];
    })
  );
}

/** The box around boxes. */
export function around(boxes: readonly IBox[]): IBox | null {
  if (boxes.length === 0) {
    return null;
  }
  const x = Math.min(...boxes.map(box => box.x));
  const y = Math.min(...boxes.map(box => box.y));
  return {
    x,
    y,
    width: Math.max(...boxes.map(box => box.x + box.width)) - x,
    height: Math.max(...boxes.map(box => box.y + box.height)) - y
  };
}
