import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IRunSummary } from '../../api';
import { asNumber, comparable, isNotFinite } from '../../api';
import type { IColours } from '../../charts';
import { Chart } from '../../charts';
import { formatValue, Select, useKept, useModel, useTrans } from '../../ui';
import type { SweepModel } from './model';
import type { IColumn } from './table';
import { goalOf, labelOf, valueOf } from './table';

/** All runs as lines across parameters and metrics, and as points of two of them. */
export function Plots(props: {
  model: SweepModel;
  onOpen: (run: string) => void;
}): JSX.Element | null {
  const model = useModel(props.model);
  const trans = useTrans();
  const all = model.view?.runs ?? [];
  const axes = model.shownColumns.filter(
    column =>
      (column.kind === 'parameter' || column.kind === 'metric') &&
      differs(all, column)
  );
  const numbers = axes.filter(column => isNumeric(all, column));
  const { best } = model;
  const names = axes.map(({ id }) => id).join(' ');
  const { points } = model;
  const goal = goalAmong(numbers, model);
  const parallel = React.useCallback(
    (colours: IColours) =>
      parallelOption(points, axes, best, goal, colours, trans),
    // The axes are made anew each time; their names say whether they changed.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [points, names, best, goal?.id]
  );
  if (axes.length < 2 || all.length < 2) {
    return null;
  }
  const partly = points.filter(run =>
    numbers.some(
      column => !Number.isFinite(asNumber(valueOf(run, column) ?? 0))
    )
  ).length;
  const place = points.findIndex(({ id }) => id === model.hovered);
  const hover = (name: string | null) => model.hover(name);
  return (
    <div className="jp-Convect-plots">
      <Chart
        option={parallel}
        height={240}
        label={trans.__('All runs across their parameters and metrics')}
        highlighted={place < 0 ? null : place}
        onHover={hover}
        onClick={props.onOpen}
        onBrush={kept => model.mark(kept)}
      />
      {numbers.length > 1 && (
        <Scatter
          model={model}
          axes={numbers}
          best={best}
          place={place}
          onOpen={props.onOpen}
        />
      )}
      {partly > 0 && (
        <div className="jp-Convect-hint">
          {trans._n(
            '%1 run has values that cannot be drawn: NaN or infinite.',
            '%1 runs have values that cannot be drawn: NaN or infinite.',
            partly
          )}
        </div>
      )}
    </div>
  );
}

function Scatter(props: {
  model: SweepModel;
  axes: IColumn[];
  best: string | null;
  place: number;
  onOpen: (run: string) => void;
}): JSX.Element {
  const { model, axes, best, place, onOpen } = props;
  const trans = useTrans();
  const [chosenX, setX] = useKept('plot x', '');
  const [chosenY, setY] = useKept('plot y', '');
  const x = axes.find(({ id }) => id === chosenX) ?? axes[0];
  const y =
    axes.find(({ id }) => id === chosenY) ?? goalAmong(axes, model) ?? axes[1];
  const { points } = model;
  const [xId, yId] = [x.id, y.id];
  const option = React.useCallback(
    (colours: IColours) => scatterOption(points, x, y, best, colours, trans),
    // The axes are made anew each time; their names say whether they changed.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [points, xId, yId, best]
  );
  const choice = (label: string, value: string, set: (v: string) => void) => (
    <label>
      {label}
      <Select
        value={value}
        options={axes.map(column => ({
          value: column.id,
          label: labelOf(column, trans)
        }))}
        onChange={set}
      />
    </label>
  );
  return (
    <div className="jp-Convect-scatter">
      <div className="jp-Convect-axes">
        {choice(trans.__('Across'), xId, setX)}
        {choice(trans.__('Up'), yId, setY)}
      </div>
      <Chart
        option={option}
        height={204}
        label={trans.__(
          'All runs: %1 against %2',
          labelOf(y, trans),
          labelOf(x, trans)
        )}
        highlighted={place < 0 ? null : place}
        onHover={name => model.hover(name)}
        onClick={onOpen}
      />
    </div>
  );
}

/** The metric that the runs are judged by, or else the first. */
function goalAmong(
  axes: readonly IColumn[],
  model: SweepModel
): IColumn | undefined {
  const goal = goalOf(model.view?.select ?? null);
  return (
    axes.find(({ id }) => id === goal) ??
    axes.find(({ kind }) => kind === 'metric')
  );
}

/** What is the same in all runs tells nothing about them. */
function differs(runs: readonly IRunSummary[], column: IColumn): boolean {
  return (
    new Set(runs.map(run => formatValue(valueOf(run, column) ?? null))).size > 1
  );
}

/** Between whole numbers there are no others to mark. */
function stepOf(runs: readonly IRunSummary[], column: IColumn) {
  return runs.every(run =>
    Number.isInteger(asNumber(valueOf(run, column) ?? 0))
  )
    ? { minInterval: 1 }
    : {};
}

function isNumeric(runs: readonly IRunSummary[], column: IColumn): boolean {
  const values = runs
    .map(run => valueOf(run, column))
    .filter(value => value !== undefined && value !== null);
  return values.length > 0 && values.every(v => comparable(v) !== null);
}

function parallelOption(
  runs: readonly IRunSummary[],
  axes: readonly IColumn[],
  best: string | null,
  goal: IColumn | undefined,
  colours: IColours,
  trans: TranslationBundle
) {
  return {
    visualMap: goal ? shades(runs, axes, goal, colours) : [],
    parallel: { left: 50, right: 60, top: 34, bottom: 16 },
    parallelAxis: axes.map((column, dim) => {
      const numeric = isNumeric(runs, column);
      const texts = runs.map(run => formatValue(valueOf(run, column)));
      return {
        dim,
        name: labelOf(column, trans),
        nameTextStyle: { color: colours.text },
        axisLine: { lineStyle: { color: colours.faint } },
        axisTick: { lineStyle: { color: colours.line } },
        axisLabel: { color: colours.faint },
        ...(numeric
          ? { type: 'value', scale: true, ...stepOf(runs, column) }
          : { type: 'category', data: [...new Set(texts)].sort() })
      };
    }),
    tooltip: tooltip(colours),
    series: [
      {
        type: 'parallel',
        inactiveOpacity: 0.08,
        activeOpacity: 1,
        emphasis: { lineStyle: { width: 4, opacity: 1 } },
        data: runs.map(run => ({
          name: run.id,
          value: axes.map(column => {
            const value = valueOf(run, column);
            return comparable(value) !== null && isNumeric(runs, column)
              ? drawn(value)
              : value === undefined
                ? '-'
                : formatValue(value);
          }),
          shown: axes.map(column => shownAs(valueOf(run, column))),
          lineStyle: {
            ...(isMarked(run, best) || !goal
              ? { color: colourOf(run, best, colours) }
              : {}),
            width: run.id === best ? 3 : 1.5,
            opacity: run.id === best ? 1 : 0.6
          }
        }))
      }
    ]
  };
}

/** Lines from one colour to the other, by how much of the metric each run has. */
function shades(
  runs: readonly IRunSummary[],
  axes: readonly IColumn[],
  goal: IColumn,
  { faint, series }: IColours
) {
  const values = runs
    .map(run => asNumber(valueOf(run, goal)))
    .filter(Number.isFinite);
  return {
    type: 'continuous',
    show: false,
    dimension: axes.indexOf(goal),
    min: Math.min(...values),
    max: Math.max(...values),
    inRange: { color: [series[1], series[0]] },
    outOfRange: { color: faint }
  };
}

function scatterOption(
  runs: readonly IRunSummary[],
  x: IColumn,
  y: IColumn,
  best: string | null,
  colours: IColours,
  trans: TranslationBundle
) {
  const axis = (column: IColumn) => ({
    type: 'value',
    ...stepOf(runs, column),
    name: labelOf(column, trans),
    nameLocation: 'middle',
    nameGap: 24,
    nameTextStyle: { color: colours.text },
    scale: true,
    axisLabel: { color: colours.faint },
    axisLine: { lineStyle: { color: colours.faint } },
    splitLine: { lineStyle: { color: colours.line } }
  });
  return {
    grid: { left: 56, right: 16, top: 10, bottom: 38 },
    xAxis: axis(x),
    yAxis: { ...axis(y), nameGap: 42 },
    tooltip: tooltip(colours),
    series: [
      {
        type: 'scatter',
        symbolSize: 9,
        emphasis: { scale: 1.8 },
        data: runs.map(run => ({
          name: run.id,
          value: [drawn(valueOf(run, x)), drawn(valueOf(run, y))],
          shown: [x, y].map(column => shownAs(valueOf(run, column))),
          symbolSize: run.id === best ? 14 : 9,
          itemStyle: { color: colourOf(run, best, colours) }
        }))
      }
    ]
  };
}

function tooltip(colours: IColours) {
  return {
    trigger: 'item',
    confine: true,
    backgroundColor: colours.background,
    borderColor: colours.line,
    textStyle: { color: colours.text, fontSize: 12 },
    // The values only: the name of a point is the id of its run.
    formatter: ({ data }: { data: { shown: string[] } }) =>
      data.shown.map(escape).join(' · ')
  };
}

/** A value as the chart takes it: what it cannot draw is a gap. */
function drawn(value: ReadonlyJSONValue | undefined): ReadonlyJSONValue {
  const number = comparable(value) === null ? value : asNumber(value);
  return number === undefined || isNotFinite(number) ? '-' : number;
}

function shownAs(value: ReadonlyJSONValue | undefined): string {
  return value === undefined ? '–' : formatValue(value);
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, char => `&#${char.charCodeAt(0)};`);
}

/** The best and what failed have colours of their own. */
function isMarked(run: IRunSummary, best: string | null): boolean {
  return run.id === best || run.state === 'failed';
}

function colourOf(
  run: IRunSummary,
  best: string | null,
  colours: IColours
): string {
  if (run.id === best) {
    return colours.good;
  }
  return run.state === 'failed' ? colours.bad : colours.series[0];
}
