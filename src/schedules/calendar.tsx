import * as React from 'react';

import { useTrans } from '../ui';
import type { IDay } from './types';
import { outcomeLabel } from './words';

const DAY = 86_400_000;
const SIZE = 13;
const WEEKDAYS = 7;

/** What the colour of a day says: the worst that happened on it. */
const ORDER = [
  'failed',
  'refused',
  'missed',
  'skipped',
  'paused',
  'waiting',
  'queued',
  'ran',
  'due'
] as const;

interface ICell {
  day: string;
  column: number;
  row: number;
  worst: string;
  counts: { [outcome: string]: number };
}

/** Where the days stand: a column for each week, Monday first. */
export function cellsOf(days: readonly IDay[]): ICell[] {
  if (days.length === 0) {
    return [];
  }
  const first = monday(days[0].day);
  return days.map(({ day, counts }) => {
    const number = Math.round((Date.parse(day) - first) / DAY);
    return {
      day,
      counts,
      column: Math.floor(number / WEEKDAYS),
      row: number % WEEKDAYS,
      worst: ORDER.find(outcome => counts[outcome]) ?? 'due'
    };
  });
}

function monday(day: string): number {
  const time = Date.parse(day);
  const weekday = (new Date(time).getUTCDay() + 6) % WEEKDAYS;
  return time - weekday * DAY;
}

/** The days of the last months and the coming weeks, coloured by what became of them. */
export function Calendar(props: { days: readonly IDay[] }): JSX.Element | null {
  const trans = useTrans();
  const cells = React.useMemo(() => cellsOf(props.days), [props.days]);
  if (cells.length === 0) {
    return null;
  }
  const label = (outcome: string) =>
    outcome === 'failed'
      ? trans.__('Failed')
      : outcome === 'due'
        ? trans.__('Still to come')
        : outcomeLabel(trans, outcome as 'ran');
  const describe = ({ day, counts }: ICell) =>
    [
      day,
      ...ORDER.filter(outcome => counts[outcome]).map(
        outcome => `${label(outcome)}: ${counts[outcome]}`
      )
    ].join('\n');
  const columns = cells[cells.length - 1].column + 1;
  const shown = ORDER.filter(outcome =>
    cells.some(({ worst }) => worst === outcome)
  );
  return (
    <figure className="jp-Convect-calendar">
      <svg
        width={columns * SIZE}
        height={WEEKDAYS * SIZE}
        role="img"
        aria-label={trans.__('Due times by day')}
      >
        {cells.map(cell => (
          <rect
            key={cell.day}
            x={cell.column * SIZE}
            y={cell.row * SIZE}
            width={SIZE - 2}
            height={SIZE - 2}
            rx={2}
            data-outcome={cell.worst}
          >
            <title>{describe(cell)}</title>
          </rect>
        ))}
      </svg>
      <figcaption>
        {shown.map(outcome => (
          <span key={outcome}>
            <svg width={SIZE} height={SIZE} aria-hidden>
              <rect
                width={SIZE - 2}
                height={SIZE - 2}
                rx={2}
                data-outcome={outcome}
              />
            </svg>
            {label(outcome)}
          </span>
        ))}
      </figcaption>
    </figure>
  );
}
