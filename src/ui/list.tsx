import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

/** Rows that are drawn before and after those in sight. */
const OVERSCAN = 8;

/** What a row is beside its content. */
export interface IListRow {
  className: string;
  level?: 1 | 2;
  isSelected: boolean;
  /** Undefined for a row that holds no others. */
  isExpanded?: boolean;
  /** For menus and tests: the run, the sweep or the component that it stands for. */
  data?: Record<`data-${string}`, string | undefined>;
  events?: Pick<
    React.DOMAttributes<HTMLElement>,
    'onClick' | 'onContextMenu' | 'onDoubleClick' | 'onPointerDown'
  >;
  children: React.ReactNode;
}

export interface IListProps {
  id: string;
  label: string;
  count: number;
  /** The height of a row, in pixels. */
  sizeOf: (index: number) => number;
  /** A name for the row that stays the same while the list changes around it. */
  keyOf: (index: number) => string;
  row: (index: number) => IListRow;
  cursor: number;
  /** The keyboard goes to another row, with Shift to take along those on the way. */
  onMove: (to: number, isMarking: boolean) => void;
  /** What all other keys do; whether it was something. */
  onKey: (event: React.KeyboardEvent) => boolean;
  isMultiselectable?: boolean;
  /** These rows are in sight. */
  onSight?: (first: number, last: number) => void;
  /** Where a row is now, so that what is looked at stays in place when others come. */
  indexOf?: (key: string) => number;
  /** Bring the row of the cursor into sight whenever this grows. */
  reveals?: number;
}

/** How many rows are in sight, without those that are drawn above and below. */
export function pageOf({
  range
}: {
  range: { startIndex: number; endIndex: number } | null;
}): number {
  return range ? range.endIndex - range.startIndex : 1;
}

/** The row that a key goes to, of so many of which `page` are in sight; null for other keys. */
export function rowFor(
  key: string,
  cursor: number,
  page: number,
  count: number
): number | null {
  const to = {
    ArrowDown: cursor + 1,
    ArrowUp: cursor - 1,
    PageDown: cursor + Math.max(1, page),
    PageUp: cursor - Math.max(1, page),
    Home: 0,
    End: count - 1
  }[key];
  return to === undefined ? null : Math.max(0, Math.min(to, count - 1));
}

/** Rows of two lines or less, any number, of which only those in sight are drawn. */
export function List(props: IListProps): JSX.Element {
  const { id, count, cursor, onSight, reveals = 0 } = props;
  const scroller = React.useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: props.sizeOf,
    getItemKey: props.keyOf,
    overscan: OVERSCAN
  });
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items[items.length - 1]?.index ?? 0;
  React.useEffect(() => onSight?.(first, last), [onSight, first, last]);
  React.useEffect(() => {
    if (reveals > 0) {
      virtualizer.scrollToIndex(cursor, { align: 'center' });
    }
    // Only when it is asked for, not whenever the cursor moves.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [reveals, virtualizer]);
  useSteadyScroll(scroller, props, first);

  const onKeyDown = (event: React.KeyboardEvent) => {
    const next = rowFor(event.key, cursor, pageOf(virtualizer), count);
    if (next !== null) {
      props.onMove(next, event.shiftKey);
      virtualizer.scrollToIndex(next);
    } else if (isMenuKey(event)) {
      openMenu(scroller.current?.querySelector('.jp-mod-cursor'));
    } else if (!props.onKey(event)) {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      ref={scroller}
      id={id}
      className="jp-Convect-list"
      role="tree"
      aria-label={props.label}
      aria-multiselectable={props.isMultiselectable}
      aria-activedescendant={cursor < 0 ? undefined : `${id}-${cursor}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={() => {
        if (cursor < 0) {
          props.onMove(0, false);
        }
      }}
    >
      <div
        className="jp-Convect-rows"
        role="presentation"
        style={{ height: virtualizer.getTotalSize() }}
      >
        {items.map(({ key, index, size, start }) => {
          const row = props.row(index);
          return (
            <div
              key={key}
              id={`${id}-${index}`}
              className={`jp-Convect-row ${row.className}${index === cursor ? ' jp-mod-cursor' : ''}`}
              style={{ height: size, transform: `translateY(${start}px)` }}
              role="treeitem"
              aria-level={row.level ?? 1}
              aria-expanded={row.isExpanded}
              aria-selected={row.isSelected}
              aria-setsize={count}
              aria-posinset={index + 1}
              {...row.data}
              {...row.events}
            >
              {row.children}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** Keep what is looked at in its place, unless the top is looked at. */
function useSteadyScroll(
  scroller: React.RefObject<HTMLDivElement>,
  { count, indexOf, sizeOf, keyOf }: IListProps,
  first: number
): void {
  const anchor = React.useRef<{ key: string; index: number } | null>(null);
  React.useLayoutEffect(() => {
    const element = scroller.current;
    const held = anchor.current;
    if (!element || !indexOf || count === 0) {
      return;
    }
    if (held && element.scrollTop > sizeOf(0)) {
      const index = indexOf(held.key);
      if (index >= 0 && index !== held.index) {
        element.scrollTop += (index - held.index) * sizeOf(0);
        anchor.current = { key: held.key, index };
        return;
      }
    }
    const index = Math.min(first + 8, count - 1);
    anchor.current = { key: keyOf(index), index };
  });
}

function isMenuKey({ key, shiftKey }: React.KeyboardEvent): boolean {
  return key === 'ContextMenu' || (key === 'F10' && shiftKey);
}

/** As the pointer would, on the line that the keyboard is on. */
function openMenu(line: Element | null | undefined): void {
  const { left, bottom } = line?.getBoundingClientRect() ?? new DOMRect();
  line?.dispatchEvent(
    new MouseEvent('contextmenu', {
      bubbles: true,
      cancelable: true,
      clientX: left + 24,
      clientY: bottom
    })
  );
}
