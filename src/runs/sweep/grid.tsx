import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import type { IRunSummary } from '../../api';
import {
  Duration,
  formatValue,
  isBad,
  isLive,
  reasonOf,
  StateIcon,
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
  const [cursor, setCursor] = React.useState(0);
  const { rows, shownColumns: columns, sort } = model;
  const best = model.view?.best ?? null;
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12
  });
  const onKeyDown = (event: React.KeyboardEvent) => {
    const to = { ArrowDown: cursor + 1, ArrowUp: cursor - 1 }[event.key];
    if (to !== undefined) {
      const next = Math.max(0, Math.min(to, rows.length - 1));
      setCursor(next);
      model.hover(rows[next]?.id ?? null);
      virtualizer.scrollToIndex(next);
      event.preventDefault();
    } else if (
      event.key === 'Enter' &&
      rows[cursor] &&
      event.target === event.currentTarget
    ) {
      props.onOpen(rows[cursor].id);
    }
  };
  const template = columns
    .map(({ kind }) =>
      kind === 'state' ? 'minmax(110px, 0.6fr)' : 'minmax(90px, 1fr)'
    )
    .join(' ');
  return (
    <div
      ref={scroller}
      className="jp-ConvectRuns-grid"
      role="grid"
      aria-label={trans.__('Runs of the sweep')}
      aria-rowcount={rows.length}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onMouseLeave={() => model.hover(null)}
    >
      <div
        className="jp-ConvectRuns-grid-head"
        role="row"
        style={{ gridTemplateColumns: template }}
      >
        {columns.map(column => (
          <button
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
            onClick={() => model.sortBy(column.id)}
          >
            {labelOf(column, trans)}
          </button>
        ))}
      </div>
      <div
        className="jp-ConvectRuns-grid-body"
        style={{ height: virtualizer.getTotalSize() }}
      >
        {virtualizer.getVirtualItems().map(item => {
          const run = rows[item.index];
          return (
            <div
              key={run.id}
              role="row"
              aria-rowindex={item.index + 1}
              className={rowClass(run, best, model.hovered)}
              data-run={run.id}
              style={{
                gridTemplateColumns: template,
                transform: `translateY(${item.start}px)`
              }}
              onMouseEnter={() => model.hover(run.id)}
              onClick={() => props.onOpen(run.id)}
            >
              {columns.map(column => (
                <span
                  key={column.id}
                  role="gridcell"
                  data-kind={column.kind}
                  title={formatValue(valueOf(run, column))}
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
            <span className="jp-ConvectRuns-grid-reason" title={reason}>
              {reason}
            </span>
          )}
          {best && (
            <span className="jp-ConvectRuns-tag jp-mod-best">
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
  const names = ['jp-ConvectRuns-grid-row'];
  if (run.id === best) {
    names.push('jp-mod-best');
  }
  if (run.id === hovered) {
    names.push('jp-mod-hovered');
  }
  return names.join(' ');
}
