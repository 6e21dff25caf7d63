import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import { CommandIDs } from '../../commands';
import { useModel, useTrans } from '../../ui';
import type { PanelModel, Row } from './model';
import type { Execute } from './rows';
import { RunRow, SweepRow } from './rows';

const ROW = 44;

/** Any number of runs, of which only those in sight are drawn. */
export function RunList(props: {
  model: PanelModel;
  execute: Execute;
}): JSX.Element {
  const model = useModel(props.model);
  const { execute } = props;
  const trans = useTrans();
  const scroller = React.useRef<HTMLDivElement>(null);
  const virtualizer = useVirtualizer({
    count: model.rowCount,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 8
  });
  const items = virtualizer.getVirtualItems();
  const first = items[0]?.index ?? 0;
  const last = items[items.length - 1]?.index ?? 0;
  React.useEffect(() => model.show(first, last), [model, first, last]);
  useSteadyScroll(scroller, model, first);

  const open = (row: Row, event?: React.MouseEvent) => {
    if (row.kind === 'run') {
      const several = event && (event.ctrlKey || event.metaKey);
      model.select(row.run.id, several ? 'toggle' : 'only');
      if (!several) {
        execute(CommandIDs.openRun, { run: row.run.id });
      }
    } else if (row.kind === 'sweep') {
      execute(CommandIDs.openSweep, { sweep: row.sweep.id });
    }
  };

  const removeSweep = (sweep: string) =>
    execute(CommandIDs.deleteSweep, { sweep });

  const move = (to: number, marking: boolean) => {
    if (marking) {
      model.selectTo(Math.max(0, Math.min(to, model.rowCount - 1)));
    }
    model.moveTo(to);
    virtualizer.scrollToIndex(model.cursor);
  };

  /** As the pointer would, on the line that the keyboard is on. */
  const openMenu = () => {
    const line = scroller.current?.querySelector('.jp-mod-cursor');
    const { left, bottom } = line?.getBoundingClientRect() ?? new DOMRect();
    line?.dispatchEvent(
      new MouseEvent('contextmenu', {
        bubbles: true,
        cancelable: true,
        clientX: left + 24,
        clientY: bottom
      })
    );
  };

  const onKeyDown = (event: React.KeyboardEvent) => {
    const row = model.rowCount > 0 ? model.row(model.cursor) : undefined;
    const page = Math.max(1, last - first - 16);
    const moves: Record<string, number> = {
      ArrowDown: model.cursor + 1,
      ArrowUp: model.cursor - 1,
      PageDown: model.cursor + page,
      PageUp: model.cursor - page,
      Home: 0,
      End: model.rowCount - 1
    };
    if (event.key in moves) {
      move(moves[event.key], event.shiftKey);
    } else if (
      event.key === 'ContextMenu' ||
      (event.key === 'F10' && event.shiftKey)
    ) {
      openMenu();
    } else if (event.key === 'Enter' && row) {
      open(row);
    } else if (event.key === ' ' && row?.kind === 'run') {
      model.select(row.run.id, 'toggle');
    } else if (event.key === 'a' && (event.ctrlKey || event.metaKey)) {
      model.selectAll();
    } else if (event.key === 'Escape' && model.selection.size > 0) {
      model.clearSelection();
    } else if (event.key === 'Delete' && row?.kind === 'run') {
      const several = model.selection.size > 1;
      execute(
        CommandIDs.deleteRun,
        several ? { runs: [...model.selection] } : { run: row.run.id }
      );
    } else if (event.key === 'Delete' && row?.kind === 'sweep') {
      removeSweep(row.sweep.id);
    } else if (row?.kind === 'sweep' && expands(event.key, row.expanded)) {
      model.toggleSweep(row.sweep.id);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div
      ref={scroller}
      className="jp-ConvectRuns-list"
      role="listbox"
      aria-label={trans.__('Runs')}
      aria-multiselectable
      aria-activedescendant={rowId(model.key(Math.max(0, model.cursor)))}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div
        className="jp-ConvectRuns-list-content"
        style={{ height: virtualizer.getTotalSize() }}
      >
        {items.map(item => {
          const row = model.row(item.index);
          const key = model.key(item.index);
          return (
            <div
              key={key}
              id={rowId(key)}
              className={classOf(row, model, item.index)}
              style={{
                height: item.size,
                transform: `translateY(${item.start}px)`
              }}
              role="option"
              aria-selected={
                row.kind === 'run' ? model.selection.has(row.run.id) : undefined
              }
              aria-setsize={model.rowCount}
              aria-posinset={item.index + 1}
              data-run={row.kind === 'run' ? row.run.id : undefined}
              data-sweep={row.kind === 'sweep' ? row.sweep.id : undefined}
              onClick={event => {
                if (event.shiftKey) {
                  model.selectTo(item.index);
                  model.moveTo(item.index);
                } else {
                  model.moveTo(item.index);
                  open(row, event);
                }
              }}
            >
              <RowContent
                row={row}
                model={model}
                execute={execute}
                removeSweep={removeSweep}
              />
            </div>
          );
        })}
      </div>
    </div>
  );
}

function RowContent(props: {
  row: Row;
  model: PanelModel;
  execute: Execute;
  removeSweep: (id: string) => void;
}): JSX.Element | null {
  const { row, model, execute, removeSweep } = props;
  const toggle = React.useCallback(
    (id: string) => model.toggleSweep(id),
    [model]
  );
  const stop = (sweep: string) => execute(CommandIDs.stopSweep, { sweep });
  switch (row.kind) {
    case 'sweep':
      return (
        <SweepRow
          sweep={row.sweep}
          expanded={row.expanded}
          onToggle={toggle}
          onStop={stop}
          onDelete={removeSweep}
        />
      );
    case 'run':
      return <RunRow run={row.run} nested={row.nested} execute={execute} />;
    case 'loading':
      return null;
  }
}

/**
 * Keep what is looked at in its place when something is added above it, unless
 * the top is looked at.
 */
function useSteadyScroll(
  scroller: React.RefObject<HTMLDivElement>,
  model: PanelModel,
  first: number
): void {
  const anchor = React.useRef<{ key: string; index: number } | null>(null);
  const { version } = model;
  React.useLayoutEffect(() => {
    const element = scroller.current;
    const held = anchor.current;
    if (element && held && element.scrollTop > ROW) {
      const index = model.indexOf(held.key);
      if (index >= 0 && index !== held.index) {
        element.scrollTop += (index - held.index) * ROW;
        anchor.current = { key: held.key, index };
        return;
      }
    }
    const inSight = Math.min(first + 8, Math.max(0, model.rowCount - 1));
    anchor.current = { key: model.key(inSight), index: inSight };
  }, [scroller, model, version, first]);
}

function expands(key: string, expanded: boolean): boolean {
  return expanded ? key === 'ArrowLeft' : key === 'ArrowRight';
}

function rowId(key: string): string {
  return `jp-convect-${key.replace(/\s/g, '-')}`;
}

function classOf(row: Row, model: PanelModel, index: number): string {
  const names = ['jp-ConvectRuns-row', `jp-mod-${row.kind}`];
  if (row.kind === 'run' && row.nested) {
    names.push('jp-mod-nested');
  }
  if (row.kind === 'run' && model.selection.has(row.run.id)) {
    names.push('jp-mod-selected');
  }
  if (model.cursor === index) {
    names.push('jp-mod-cursor');
  }
  return names.join(' ');
}
