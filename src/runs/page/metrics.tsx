import * as React from 'react';

import type { AnyNumber } from '../../api';
import { asNumber, isNotFinite } from '../../api';
import type { IColours } from '../../charts';
import { Chart } from '../../charts';
import { formatNumber, formatValue, useTrans } from '../../ui';
import type { IMetricPoint, IStepStory } from './events';

/** Every metric that was reported more than once, over its steps or over time. */
export function Metrics(props: {
  story: IStepStory;
  last: Record<string, AnyNumber>;
}): JSX.Element {
  const { story, last } = props;
  const trans = useTrans();
  const names = [...new Set([...story.metrics.keys(), ...Object.keys(last)])];
  if (names.length === 0) {
    return (
      <div className="jp-ConvectRuns-hint">
        {trans.__(
          'No metrics. Report one with jupyterlab_convect.metric("loss", 0.3, step=5).'
        )}
      </div>
    );
  }
  return (
    <div className="jp-ConvectRuns-metrics">
      {names.map(name => {
        const points = story.metrics.get(name) ?? [];
        const value = points[points.length - 1]?.value ?? last[name];
        const lost = points.filter(point => isNotFinite(point.value)).length;
        return (
          <section key={name} className="jp-ConvectRuns-metric">
            <h4>
              {name}
              <span className={isNotFinite(value) ? 'jp-mod-notFinite' : ''}>
                {formatValue(value)}
              </span>
              {lost > 0 && points.length > 1 && (
                <small>
                  {trans._n(
                    '%2 of %1 value is not a finite number',
                    '%2 of %1 values are not finite numbers',
                    points.length,
                    lost
                  )}
                </small>
              )}
            </h4>
            {points.length > 1 && <MetricChart name={name} points={points} />}
          </section>
        );
      })}
    </div>
  );
}

interface ITooltipItem {
  value: [number, number | '-'];
  data: { shown?: string };
}

function MetricChart(props: {
  name: string;
  points: IMetricPoint[];
}): JSX.Element {
  const { name, points } = props;
  const trans = useTrans();
  const count = points.length;
  const option = React.useCallback(
    (colours: IColours) => lineOption(name, points.slice(0, count), colours),
    [name, points, count]
  );
  return (
    <Chart
      option={option}
      height={160}
      label={trans.__('%1 over time, %2 points', name, count)}
    />
  );
}

/**
 * A line over the reported steps or, when there are none, over seconds since the first point.
 * What is not a finite number is a gap in it, and a mark at the edge of the chart.
 */
export function lineOption(
  name: string,
  points: readonly IMetricPoint[],
  colours: IColours
) {
  const stepped = points.every(point => point.step !== null);
  const place = (point: IMetricPoint) =>
    stepped ? point.step : point.time - points[0].time;
  const axis = {
    axisLine: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours.faint },
    splitLine: { lineStyle: { color: colours.line } },
    scale: true
  };
  return {
    color: colours.series,
    grid: { left: 8, right: 16, top: 12, bottom: 4, containLabel: true },
    tooltip: {
      trigger: 'axis',
      backgroundColor: colours.background,
      borderColor: colours.line,
      textStyle: { color: colours.text },
      formatter: (items: ITooltipItem | ITooltipItem[]) =>
        [items]
          .flat()
          .filter(({ value }) => value[1] !== '-')
          .map(({ value, data }) =>
            [value[0], data.shown ?? value[1]].map(part =>
              typeof part === 'number' ? formatNumber(part) : part
            )
          )
          .map(([x, y]) => `${x}: ${y}`)
          .join('<br>')
    },
    xAxis: {
      type: 'value',
      ...axis,
      axisLabel: {
        color: colours.faint,
        formatter: stepped ? '{value}' : '{value} s'
      }
    },
    yAxis: [
      { type: 'value', ...axis },
      { type: 'value', show: false, min: 0, max: 1 }
    ],
    series: [
      {
        type: 'line',
        name,
        showSymbol: points.length < 50,
        connectNulls: false,
        data: points.map(point => [
          place(point),
          Number.isFinite(asNumber(point.value)) ? asNumber(point.value) : '-'
        ])
      },
      {
        type: 'scatter',
        name,
        yAxisIndex: 1,
        symbol: 'triangle',
        symbolSize: 7,
        itemStyle: { color: colours.bad },
        tooltip: { trigger: 'item' },
        data: points
          .filter(point => !Number.isFinite(asNumber(point.value)))
          .map(point => ({
            value: [place(point), asNumber(point.value) === Infinity ? 1 : 0],
            shown: formatValue(point.value)
          }))
      }
    ]
  };
}
