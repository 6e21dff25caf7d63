import * as React from 'react';

import type { IColours } from '../../charts';
import { Chart } from '../../charts';
import { formatNumber, useTrans } from '../../ui';
import type { IMetricPoint, IStepStory } from './events';

/** Every metric that was reported more than once, over its steps or over time. */
export function Metrics(props: {
  story: IStepStory;
  last: Record<string, number>;
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
        return (
          <section key={name} className="jp-ConvectRuns-metric">
            <h4>
              {name}
              <span>{formatNumber(value)}</span>
            </h4>
            {points.length > 1 && <MetricChart name={name} points={points} />}
          </section>
        );
      })}
    </div>
  );
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

/** A line over the reported steps or, when there are none, over seconds since the first point. */
function lineOption(name: string, points: IMetricPoint[], colours: IColours) {
  const stepped = points.every(point => point.step !== null);
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
      textStyle: { color: colours.text }
    },
    xAxis: {
      type: 'value',
      ...axis,
      axisLabel: {
        color: colours.faint,
        formatter: stepped ? '{value}' : '{value} s'
      }
    },
    yAxis: { type: 'value', ...axis },
    series: [
      {
        type: 'line',
        name,
        showSymbol: points.length < 50,
        data: points.map(point => [
          stepped ? point.step : point.time - points[0].time,
          point.value
        ])
      }
    ]
  };
}
