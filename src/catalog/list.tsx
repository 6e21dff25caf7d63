import {
  caretDownIcon,
  caretRightIcon,
  errorIcon
} from '@jupyterlab/ui-components';
import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import { useModel, useTrans } from '../ui';
import { dragComponent, dropOf } from './drag';
import { componentIcon } from './icons';
import type { CatalogModel } from './model';
import type { Row } from './search';
import type { IEntry } from './types';

const ROW = 42;
const HEADING = 26;

/** What can be done to a component of the list. */
export interface IListActions {
  /** Put it into the pipeline that is open. */
  add: (entry: IEntry) => void;
}

/** The components by category, of which only those in sight are drawn. */
export function ComponentList(props: {
  id: string;
  model: CatalogModel;
  actions: IListActions;
}): JSX.Element {
  const { id, actions } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const { rows, cursor } = model;
  const scroller = React.useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: index => (rows[index].kind === 'category' ? HEADING : ROW),
    getItemKey: index => rows[index].key,
    overscan: 10
  });

  const { reveals } = model;
  React.useEffect(() => {
    if (reveals > 0) {
      virtualizer.scrollToIndex(model.cursor, { align: 'center' });
    }
  }, [model, reveals, virtualizer]);

  const move = (to: number) => {
    model.moveTo(Math.max(0, to));
    virtualizer.scrollToIndex(model.cursor);
  };

  const onKeyDown = (event: React.KeyboardEvent) => {
    const row = rows[cursor];
    const page = Math.max(
      1,
      Math.floor((scroller.current?.clientHeight ?? 0) / ROW) - 1
    );
    const moves: { [key: string]: number } = {
      ArrowDown: cursor + 1,
      ArrowUp: cursor - 1,
      PageDown: cursor + page,
      PageUp: cursor - page,
      Home: 0,
      End: rows.length - 1
    };
    if (event.key in moves) {
      move(moves[event.key]);
    } else if (row?.kind === 'category' && toggles(event.key, row.isOpen)) {
      model.toggle(row.name);
    } else if (row?.kind === 'component' && event.key === 'ArrowLeft') {
      move(headingOf(rows, cursor));
    } else if (row?.kind === 'component' && event.key === 'Enter') {
      actions.add(row.entry);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      ref={scroller}
      id={id}
      className="jp-ConvectCatalog-list"
      role="tree"
      aria-label={trans.__('Components')}
      aria-activedescendant={cursor < 0 ? undefined : `${id}-${cursor}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={() => {
        if (cursor < 0) {
          model.moveTo(0);
        }
      }}
    >
      <div
        className="jp-ConvectCatalog-rows"
        role="presentation"
        style={{ height: virtualizer.getTotalSize() }}
      >
        {virtualizer.getVirtualItems().map(item => {
          const row = rows[item.index];
          const isHeading = row.kind === 'category';
          return (
            <div
              key={item.key}
              id={`${id}-${item.index}`}
              className={classOf(row, item.index === cursor)}
              style={{
                height: item.size,
                transform: `translateY(${item.start}px)`
              }}
              role="treeitem"
              aria-level={isHeading ? 1 : 2}
              aria-expanded={isHeading ? row.isOpen : undefined}
              aria-selected={item.index === cursor}
              aria-posinset={isHeading ? undefined : row.position}
              aria-setsize={isHeading ? undefined : row.count}
              data-digest={isHeading ? undefined : row.entry.digest}
              data-catalog={isHeading ? undefined : row.entry.catalog}
              onClick={() => {
                model.moveTo(item.index);
                if (isHeading) {
                  model.toggle(row.name);
                }
              }}
              onContextMenu={() => model.moveTo(item.index)}
              onDoubleClick={() => {
                if (!isHeading) {
                  actions.add(row.entry);
                }
              }}
              onPointerDown={event => {
                if (!isHeading) {
                  const { entry } = row;
                  dragComponent(event, entry, () => dropOf(model, entry));
                }
              }}
            >
              {isHeading ? (
                <Heading {...row} />
              ) : (
                <Component entry={row.entry} />
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Heading(props: {
  name: string;
  count: number;
  isOpen: boolean;
}): JSX.Element {
  const { name, count, isOpen } = props;
  const trans = useTrans();
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <>
      <Caret.react tag="span" className="jp-ConvectCatalog-caret" />
      <span className="jp-ConvectCatalog-name">
        {name || trans.__('Other')}
      </span>
      <span className="jp-ConvectCatalog-count">{count}</span>
    </>
  );
}

const Component = React.memo(function Component(props: {
  entry: IEntry;
}): JSX.Element {
  const { entry } = props;
  const trans = useTrans();
  const isBroken = !entry.digest;
  const Icon = isBroken ? errorIcon : componentIcon;
  const detail = isBroken ? entry.error?.message : entry.description;
  return (
    <>
      <Icon.react tag="span" className="jp-ConvectCatalog-icon" />
      <span className="jp-ConvectCatalog-lines">
        <span className="jp-ConvectCatalog-line">
          <span className="jp-ConvectCatalog-name">{entry.name}</span>
          {isBroken && (
            <span className="jp-ConvectCatalog-tag jp-mod-error">
              {trans.__('Error')}
            </span>
          )}
          {!isBroken && entry.error && (
            <span className="jp-ConvectCatalog-tag jp-mod-warn">
              {trans.__('Not read')}
            </span>
          )}
          {entry.update && (
            <span className="jp-ConvectCatalog-tag jp-mod-update">
              {trans.__('Update')}
            </span>
          )}
        </span>
        <span className="jp-ConvectCatalog-detail">{firstLine(detail)}</span>
      </span>
    </>
  );
});

function firstLine(text = ''): string {
  return text.split('\n', 1)[0];
}

function toggles(key: string, isOpen: boolean): boolean {
  return key === 'Enter' || key === ' ' || key === sideways(isOpen);
}

function sideways(isOpen: boolean): string {
  return isOpen ? 'ArrowLeft' : 'ArrowRight';
}

/** The row of the category that a component is in. */
function headingOf(rows: readonly Row[], index: number): number {
  let at = index;
  while (at > 0 && rows[at].kind !== 'category') {
    at -= 1;
  }
  return at;
}

function classOf(row: Row, isAtCursor: boolean): string {
  const names = ['jp-ConvectCatalog-row', `jp-mod-${row.kind}`];
  if (isAtCursor) {
    names.push('jp-mod-cursor');
  }
  if (row.kind === 'component' && !row.entry.digest) {
    names.push('jp-mod-broken');
  }
  return names.join(' ');
}
