import * as React from 'react';

import type { AnyNumber } from '../../api';
import { asNumber, isNotFinite } from '../../api';
import type { IColours } from '../../charts';
import { Chart } from '../../charts';
import {
  Check,
  formatNumber,
  formatSize,
  formatValue,
  useKept,
  useTrans
} from '../../ui';
import type { IMetricPoint, IStepStory } from './events';

/** Every metric that was reported more than once, over its steps or over time. */
export function Metrics(props: {
  story: IStepStory;
  last: Record<string, AnyNumber>;
}): JSX.Element {
  const { story, last } = props;
  const trans = useTrans();
  const [look, setLook] = useKept('curves', PLAIN);
  const names = [...new Set([...story.metrics.keys(), ...Object.keys(last)])];
  return (
    <div className="jp-Convect-metrics">
      {names.length > 0 ? (
        <LookBar look={look} onLook={setLook} />
      ) : (
        <div className="jp-Convect-hint">
          {trans.__(
            'No metrics. Report one with jupyterlab_convect.metric("loss", 0.3, step=5), or log scalars for TensorBoard.'
          )}
        </div>
      )}
      {names.map(name => {
        const points = story.metrics.get(name) ?? [];
        const value = points[points.length - 1]?.value ?? last[name];
        const lost = points.filter(point => isNotFinite(point.value)).length;
        return (
          <section key={name} className="jp-Convect-metric">
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
            {points.length > 1 && (
              <MetricChart
                name={name}
                curves={[{ name, points }]}
                look={look}
              />
            )}
          </section>
        );
      })}
      <UsageCharts usage={story.usage} />
    </div>
  );
}

/** What the processes of the step used, over time. */
function UsageCharts(props: {
  usage: IStepStory['usage'];
}): JSX.Element | null {
  const { usage } = props;
  const trans = useTrans();
  const kinds: [name: string, label: string, format?: Format][] = [
    ['cpu', trans.__('CPU in cores')],
    ['memory', trans.__('Memory'), formatSize],
    ['gpu', trans.__('GPU in percent')],
    ['gpu_memory', trans.__('GPU memory'), formatSize]
  ];
  const charts = kinds.filter(([name]) => (usage.get(name)?.length ?? 0) > 1);
  return charts.length === 0 ? null : (
    <>
      <h3>{trans.__('Resources in use')}</h3>
      {charts.map(([name, label, format = formatNumber]) => {
        const points = usage.get(name) ?? [];
        const most = Math.max(...points.map(({ value }) => asNumber(value)));
        return (
          <section key={name} className="jp-Convect-metric">
            <h4>
              {label}
              <span>{trans.__('at most %1', format(most))}</span>
            </h4>
            <MetricChart
              name={label}
              curves={[{ name: label, points }]}
              look={{ ...PLAIN, format }}
            />
          </section>
        );
      })}
    </>
  );
}

type Format = (value: number) => string;

/** How curves are drawn. */
export interface ILook {
  /** How values are written. */
  format?: Format;
  isLog: boolean;
  /** How much of the past each point has, from 0 to less than 1. */
  smoothing: number;
}

export const PLAIN: ILook = { isLog: false, smoothing: 0 };

/** The curve of one run. */
export interface ICurve {
  name: string;
  points: readonly IMetricPoint[];
}

/** How the curves below are drawn. */
export function LookBar(props: {
  look: ILook;
  onLook: (look: ILook) => void;
}): JSX.Element {
  const { look, onLook } = props;
  const trans = useTrans();
  return (
    <div className="jp-Convect-look">
      <Check
        label={trans.__('Logarithmic')}
        checked={look.isLog}
        onChange={isLog => onLook({ ...look, isLog })}
      />
      <label>
        {trans.__('Smoothing')}
        <input
          type="range"
          min={0}
          max={0.99}
          step={0.01}
          value={look.smoothing}
          onChange={event =>
            onLook({ ...look, smoothing: Number(event.target.value) })
          }
        />
      </label>
      <span className="jp-Convect-help">
        {trans.__('Ctrl and the wheel zoom.')}
      </span>
    </div>
  );
}

export function MetricChart(props: {
  name: string;
  curves: readonly ICurve[];
  look: ILook;
}): JSX.Element {
  const { name, curves, look } = props;
  const trans = useTrans();
  const count = curves.reduce((sum, { points }) => sum + points.length, 0);
  const option = React.useCallback(
    (colours: IColours) => curvesOption(curves, colours, look),
    // The points of a curve grow in place.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [count, look, curves.map(curve => curve.name).join('\n')]
  );
  return (
    <Chart
      option={option}
      height={curves.length > 1 ? 220 : 160}
      label={trans.__('%1 over time, %2 points', name, count)}
    />
  );
}

/** Each value with a share of those before it; what is not finite is left out and stays. */
export function smoothed(
  values: readonly number[],
  smoothing: number
): number[] {
  let [average, weight] = [0, 0];
  return values.map(value => {
    if (!Number.isFinite(value)) {
      return value;
    }
    average = smoothing * average + (1 - smoothing) * value;
    weight = smoothing * weight + (1 - smoothing);
    return average / weight;
  });
}

interface ITooltipItem {
  seriesName: string;
  value: [number, number | '-'];
  data: { shown?: string };
}

/**
 * Lines over the reported steps or, when there are none, over seconds since the first point.
 * What is not a finite number, or has no logarithm, is a gap; the former is marked at the edge.
 */
export function curvesOption(
  curves: readonly ICurve[],
  colours: IColours,
  look: ILook = PLAIN
) {
  const all = curves.flatMap(({ points }) => points);
  const stepped = all.every(point => point.step !== null);
  const axis = {
    axisLine: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours.faint },
    splitLine: { lineStyle: { color: colours.line } },
    scale: true
  };
  const isSeveral = curves.length > 1;
  const { format = formatNumber } = look;
  return {
    color: colours.series,
    grid: {
      left: 8,
      right: 16,
      top: isSeveral ? 32 : 12,
      bottom: 4,
      containLabel: true
    },
    legend: {
      show: isSeveral,
      top: 0,
      type: 'scroll',
      textStyle: { color: colours.text }
    },
    dataZoom: [{ type: 'inside', zoomOnMouseWheel: 'ctrl', xAxisIndex: 0 }],
    tooltip: {
      trigger: 'axis',
      backgroundColor: colours.background,
      borderColor: colours.line,
      textStyle: { color: colours.text },
      formatter: (items: ITooltipItem | ITooltipItem[]) =>
        [items]
          .flat()
          .filter(({ value }) => value[1] !== '-')
          .map(({ seriesName, value, data }) => {
            const x = formatNumber(value[0]);
            const shown = data.shown ?? value[1];
            const y = typeof shown === 'number' ? format(shown) : shown;
            return isSeveral
              ? `${escaped(seriesName)} ${x}: ${y}`
              : `${x}: ${y}`;
          })
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
      {
        type: look.isLog ? 'log' : 'value',
        ...axis,
        axisLabel: { color: colours.faint, formatter: look.format }
      },
      { type: 'value', show: false, min: 0, max: 1 }
    ],
    series: curves.flatMap(curve => seriesOf(curve, stepped, look, colours))
  };
}

function seriesOf(
  { name, points }: ICurve,
  stepped: boolean,
  { isLog, smoothing }: ILook,
  colours: IColours
) {
  const place = (point: IMetricPoint) =>
    stepped ? point.step : point.time - points[0].time;
  const values = points.map(point => asNumber(point.value));
  const drawn = smoothed(values, smoothing);
  const canDraw = (value: number) =>
    Number.isFinite(value) && (!isLog || value > 0);
  return [
    {
      type: 'line',
      name,
      showSymbol: points.length < 50,
      connectNulls: false,
      data: points.map((point, index) => [
        place(point),
        canDraw(drawn[index]) ? drawn[index] : '-'
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
        .filter((_, index) => !Number.isFinite(values[index]))
        .map(point => ({
          value: [place(point), asNumber(point.value) === Infinity ? 1 : 0],
          shown: formatValue(point.value)
        }))
    }
  ];
}

/** For a tooltip, which is HTML. */
function escaped(text: string): string {
  return text.replace(/[&<>"]/g, letter => `&#${letter.charCodeAt(0)};`);
}
