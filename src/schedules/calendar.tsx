import * as React from 'react';

import { useTrans } from '../ui';
import type { IDay } from './types';
import { outcomeLabel } from './words';

const DAY = 86_400_000;
const SIZE = 13;
const WEEKDAYS = 7;
/** Room for the names of weekdays and months. */
const LEFT = 30;
const TOP = 14;
const FAINTEST = 0.4;

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
  /** How many due times the day has, from 0 to 1 of the day that has the most. */
  heat: number;
}

/** Where the days stand: a column for each week, Monday first. */
export function cellsOf(days: readonly IDay[]): ICell[] {
  if (days.length === 0) {
    return [];
  }
  const first = monday(days[0].day);
  const total = ({ counts }: IDay) =>
    Object.values(counts).reduce((sum, count) => sum + count, 0);
  const most = Math.max(...days.map(total));
  return days.map(each => {
    const { day, counts } = each;
    const number = Math.round((Date.parse(day) - first) / DAY);
    return {
      day,
      counts,
      column: Math.floor(number / WEEKDAYS),
      row: number % WEEKDAYS,
      worst: ORDER.find(outcome => counts[outcome]) ?? 'due',
      heat: total(each) / most
    };
  });
}

/** The names of the months, each above the first week that begins in it. */
function monthsOf(cells: readonly ICell[]): { column: number; name: string }[] {
  const first = monday(cells[0].day);
  const last = cells[cells.length - 1].column;
  const monthOf = (column: number) =>
    nameOf(first + column * WEEKDAYS * DAY, { month: 'short' });
  return Array.from({ length: last + 1 }, (_, column) => column)
    .filter(column => column === 0 || monthOf(column) !== monthOf(column - 1))
    .map(column => ({ column, name: monthOf(column) }));
}

function nameOf(time: number, how: Intl.DateTimeFormatOptions): string {
  const language = document.documentElement.lang || 'en';
  return new Date(time).toLocaleString(language, { ...how, timeZone: 'UTC' });
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
        width={LEFT + Math.max(columns, 3) * SIZE}
        height={TOP + WEEKDAYS * SIZE}
        role="img"
        aria-label={trans.__('Due times by day')}
      >
        {monthsOf(cells).map(({ column, name }) => (
          <text key={column} x={LEFT + column * SIZE} y={TOP - 4}>
            {name}
          </text>
        ))}
        {[0, 2, 4].map(row => (
          <text key={row} x={0} y={TOP + (row + 1) * SIZE - 3}>
            {nameOf(monday(cells[0].day) + row * DAY, { weekday: 'short' })}
          </text>
        ))}
        {cells.map(cell => (
          <rect
            key={cell.day}
            x={LEFT + cell.column * SIZE}
            y={TOP + cell.row * SIZE}
            fillOpacity={FAINTEST + (1 - FAINTEST) * cell.heat}
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
