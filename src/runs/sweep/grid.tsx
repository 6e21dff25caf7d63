import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import type { IRunSummary } from '../../api';
import {
  Duration,
  formatValue,
  isBad,
  isLive,
  reasonOf,
  pageOf,
  rowFor,
  StateIcon,
  useKept,
  useModel,
  useTrans
} from '../../ui';
import type { SweepModel } from './model';
import type { IColumn } from './table';
import { labelOf, valueOf } from './table';

const ROW = 28;

/** The runs of a sweep, one a line. */
export function SweepTable(props: {
  model: SweepModel;
  onOpen: (run: string) => void;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const scroller = React.useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useKept('table cursor', 0);
  const id = React.useId();
  const { rows, shownColumns: columns, sort } = model;
  const { best } = model;
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12
  });
  const onKeyDown = (event: React.KeyboardEvent) => {
    const page = pageOf(virtualizer);
    const next = rowFor(event.key, cursor, page, rows.length);
    if (next !== null) {
      setCursor(next);
      model.hover(rows[next]?.id ?? null);
      virtualizer.scrollToIndex(next);
      event.preventDefault();
    } else if (!rows[cursor] || event.target !== event.currentTarget) {
      return;
    } else if (event.key === 'Enter') {
      props.onOpen(rows[cursor].id);
    } else if (event.key === ' ') {
      model.toggle(rows[cursor].id);
      event.preventDefault();
    }
  };
  // Why a run failed needs more room than that it did not.
  const hasReasons = rows.some(({ state }) => isBad(state));
  const template = columns
    .map(({ kind }) =>
      kind === 'state'
        ? `minmax(110px, ${hasReasons ? 2 : 0.6}fr)`
        : 'minmax(90px, 1fr)'
    )
    .join(' ');
  return (
    <div
      ref={scroller}
      className="jp-Convect-grid"
      role="grid"
      aria-label={trans.__('Runs of the sweep')}
      aria-rowcount={rows.length}
      aria-multiselectable
      aria-activedescendant={rows[cursor] && `${id}-${rows[cursor].id}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onMouseLeave={() => model.hover(null)}
    >
      <div
        className="jp-Convect-gridHead"
        role="row"
        style={{ gridTemplateColumns: template }}
      >
        {columns.map(column => (
          <span
            key={column.id}
            role="columnheader"
            data-kind={column.kind}
            aria-sort={
              sort?.column === column.id
                ? sort.descending
                  ? 'descending'
                  : 'ascending'
                : 'none'
            }
          >
            <button onClick={() => model.sortBy(column.id)}>
              {labelOf(column, trans)}
            </button>
          </span>
        ))}
      </div>
      <div
        className="jp-Convect-gridBody"
        style={{ height: virtualizer.getTotalSize() }}
      >
        {virtualizer.getVirtualItems().map(item => {
          const run = rows[item.index];
          return (
            <div
              key={run.id}
              id={`${id}-${run.id}`}
              role="row"
              aria-rowindex={item.index + 1}
              aria-selected={model.selection.has(run.id)}
              className={rowClass(run, best, model.hovered)}
              data-run={run.id}
              style={{
                gridTemplateColumns: template,
                transform: `translateY(${item.start}px)`
              }}
              onMouseEnter={() => model.hover(run.id)}
              onClick={event => {
                setCursor(item.index);
                if (event.ctrlKey || event.metaKey) {
                  model.toggle(run.id);
                } else {
                  props.onOpen(run.id);
                }
              }}
            >
              {columns.map(column => (
                <span
                  key={column.id}
                  role="gridcell"
                  data-kind={column.kind}
                  title={
                    column.kind === 'state'
                      ? undefined
                      : formatValue(valueOf(run, column))
                  }
                >
                  <Cell run={run} column={column} best={run.id === best} />
                </span>
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function Cell(props: {
  run: IRunSummary;
  column: IColumn;
  best: boolean;
}): JSX.Element {
  const { run, column, best } = props;
  const trans = useTrans();
  const reason = reasonOf(run, trans) ?? '';
  switch (column.kind) {
    case 'state':
      return (
        <>
          <StateIcon state={run.state} />
          {isBad(run.state) && run.reason && (
            <span className="jp-Convect-gridReason" title={reason}>
              {reason}
            </span>
          )}
          {best && (
            <span className="jp-Convect-tag jp-mod-best">
              {trans.__('Best')}
            </span>
          )}
        </>
      );
    case 'duration':
      return (
        <Duration
          started={run.started}
          ended={run.ended}
          live={isLive(run.state)}
        />
      );
    default:
      return <>{formatValue(valueOf(run, column))}</>;
  }
}

function rowClass(
  run: IRunSummary,
  best: string | null,
  hovered: string | null
): string {
  const names = ['jp-Convect-gridRow'];
  if (run.id === best) {
    names.push('jp-mod-best');
  }
  if (run.id === hovered) {
    names.push('jp-mod-hovered');
  }
  return names.join(' ');
}
