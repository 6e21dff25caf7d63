import { around } from './positions';
import type { IBox, IPoint } from './graph';
import {
  foldedInto,
  isFolded,
  isGroup,
  membersOf,
  parentsOf,
  pointOf,
  sizeOf
} from './graph';
import type { IDocument } from './schema';
import type { IBadge, INodeView } from './views';

export const WIDTH = 200;
const HEADER = 48;
const ROW = 20;
const BADGES = 24;
const FOOTER = 22;
const PADDING = 6;
/** Beside what is in a graph component, where the names of its ends are. */
const SIDE = 110;

/** The size of a node; the style sheet has the same numbers. */
export function viewSize(view: INodeView): { width: number; height: number } {
  const rows = Math.max(view.inputs.length, view.outputs.length);
  const ports = rows ? rows * ROW + PADDING : 0;
  return {
    width: view.inner ? view.inner.width + 2 * SIDE : WIDTH,
    height:
      HEADER +
      rowsHeight(view) +
      Math.max(ports, view.inner?.height ?? 0) +
      (view.step ? FOOTER : 0)
  };
}

/** The largest letters in which a name fills a box, for looking at it from far away. */
export function farFontSize(
  name: string,
  { width, height }: { width: number; height: number }
): number {
  // Of letters that are wide the line breaks sooner, and Chinese ones are twice as wide.
  const wide = name.match(/[\u3000-\uffff]/g)?.length ?? 0;
  const units = 0.6 * (name.length - wide) + wide;
  for (let lines = 1; ; lines++) {
    const fit = Math.min(
      ((width - 24) * lines) / Math.max(units, 1),
      (height - 6) / (lines * 1.1)
    );
    const next = Math.min(
      ((width - 24) * (lines + 1)) / Math.max(units, 1),
      (height - 6) / ((lines + 1) * 1.1)
    );
    if (next <= fit) {
      return Math.floor(fit);
    }
  }
}

/** Where, in its node, the area of what is in a graph component begins. */
export function innerCorner(view: INodeView): IPoint {
  return { x: SIDE, y: HEADER + rowsHeight(view) };
}

/** The height of the rows of its rules and badges. */
function rowsHeight(view: INodeView): number {
  return (view.rules.length + badgeRows(view).length) * BADGES;
}

/** What it needs in one row, and the image, which is often long, in another. */
export function badgeRows({ badges }: INodeView): IBadge[][] {
  return [
    badges.filter(badge => badge.kind !== 'image'),
    badges.filter(badge => badge.kind === 'image')
  ].filter(row => row.length > 0);
}

/** How far down a node its ports are; the first one, and the next ones. */
export function portOffset(view: INodeView, index: number): number {
  const above = HEADER + rowsHeight(view);
  return above + PADDING / 2 + ROW * (index + 0.5);
}

/** How far down a node the ends of its order are. */
export const ORDER_OFFSET = HEADER / 2;

/** Between nodes that nobody has placed. */
const BELOW = 60;

export const GROUP_MARGIN = { x: 20, top: 40, bottom: 20 };

/** The box of everything on the canvas: nodes, open groups, and notes. */
export function boxesOf(
  document: IDocument,
  views: ReadonlyMap<string, INodeView>
): Map<string, IBox> {
  const boxes = new Map<string, IBox>();
  const unplaced: string[] = [];
  for (const [id, node] of Object.entries(document.nodes)) {
    const view = views.get(id);
    if (view && (!isGroup(node) || view.isFolded)) {
      const at = pointOf(document.layout?.[id]);
      if (at) {
        boxes.set(id, { ...at, ...viewSize(view) });
      } else {
        unplaced.push(id);
      }
    }
  }
  placeBelow(document, views, boxes, unplaced);
  for (const id of Object.keys(document.comments ?? {})) {
    const place = document.layout?.[id];
    const size = sizeOf(place) ?? { width: 200, height: 100 };
    boxes.set(id, { ...(pointOf(place) ?? { x: 0, y: -140 }), ...size });
  }
  const hidden = foldedInto(document);
  for (const id of innermostFirst(document)) {
    if (!isFolded(document, id)) {
      const members = membersOf(document, id)
        .filter(member => !hidden.has(member))
        .map(member => boxes.get(member))
        .filter(box => box !== undefined);
      const at = pointOf(document.layout?.[id]) ?? { x: 0, y: 0 };
      boxes.set(id, groupBox(members, at, views.get(id)?.rules.length));
    }
  }
  return boxes;
}

/** The groups, those in another before it. */
function innermostFirst(document: IDocument): string[] {
  const groups = Object.keys(document.nodes).filter(id =>
    isGroup(document.nodes[id])
  );
  const parents = parentsOf(document);
  const depth = (id: string): number =>
    parents.has(id) ? depth(parents.get(id)!) + 1 : 0;
  return groups.sort((one, two) => depth(two) - depth(one));
}

/**
 * Nodes that nobody has placed go below all others, those of a group next to
 * each other, so that no frame lies around what is not in it.
 */
function placeBelow(
  document: IDocument,
  views: ReadonlyMap<string, INodeView>,
  boxes: Map<string, IBox>,
  ids: readonly string[]
): void {
  const parents = parentsOf(document);
  const placed = around([...boxes.values()]);
  let y = placed ? placed.y + placed.height + BELOW : 0;
  let last: string | undefined;
  const home = (id: string) => parents.get(id) ?? '';
  for (const id of [...ids].sort((a, b) => (home(a) < home(b) ? -1 : 1))) {
    if (last !== undefined && last !== home(id)) {
      y += GROUP_MARGIN.top + GROUP_MARGIN.bottom;
    }
    last = home(id);
    const size = viewSize(views.get(id)!);
    boxes.set(id, { x: placed?.x ?? 0, y, ...size });
    y += size.height + BELOW;
  }
}

/** The height of the header of an open group with so many rules. */
export function groupTop(rules: number): number {
  return GROUP_MARGIN.top + rules * BADGES;
}

/** The frame of an open group around its members. */
export function groupBox(
  members: readonly IBox[],
  at: IPoint,
  rules = 0
): IBox {
  const inner = around(members);
  const { x, bottom } = GROUP_MARGIN;
  const top = groupTop(rules);
  if (!inner) {
    return { ...at, width: WIDTH, height: top + 60 };
  }
  return {
    x: inner.x - x,
    y: inner.y - top,
    width: inner.width + 2 * x,
    height: inner.height + top + bottom
  };
}
