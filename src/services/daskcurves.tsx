import * as React from 'react';

import type { IDaskCluster } from '../api';
import type { IColours } from '../charts';
import { Chart } from '../charts';
import { formatNumber, formatSize, useTrans } from '../ui';

/** What was seen of a cluster at a moment; null is not known. */
export interface IDaskSample {
  /** Seconds since 1970, by this browser's clock. */
  time: number;
  workers: number;
  /** How many CPUs are busy. */
  cpu: number | null;
  memory: number;
  processing: number;
  waiting: number;
}

/** A quarter of an hour, at one sample every two seconds. */
export const MOST_SAMPLES = 450;

/** What was seen before, with what is seen now; clusters that are gone are forgotten. */
export function sampled(
  before: ReadonlyMap<string, readonly IDaskSample[]>,
  clusters: readonly IDaskCluster[],
  time: number
): ReadonlyMap<string, readonly IDaskSample[]> {
  return new Map(
    clusters.map(cluster => {
      const { id, is_known, workers, cpu, memory, processing, waiting } =
        cluster;
      const known = before.get(id) ?? [];
      const busy = cpu === null ? null : cpu / 100;
      const now = { time, workers, cpu: busy, memory, processing, waiting };
      return [id, is_known ? [...known, now].slice(-MOST_SAMPLES) : known];
    })
  );
}

type Quantity = Exclude<keyof IDaskSample, 'time'>;

/** The numbers of a cluster over time, since somebody looks. */
export function DaskCurves(props: {
  samples: readonly IDaskSample[];
}): JSX.Element | null {
  const { samples } = props;
  const trans = useTrans();
  if (samples.length < 2) {
    return null;
  }
  const curves: [label: string, lines: [Quantity, string][]][] = [
    [trans.__('Workers'), [['workers', trans.__('Workers')]]],
    [trans.__('CPU in cores'), [['cpu', trans.__('CPU in cores')]]],
    [trans.__('Memory'), [['memory', trans.__('Memory')]]],
    [
      trans.__('Tasks'),
      [
        ['processing', trans.__('computing')],
        ['waiting', trans.__('waiting')]
      ]
    ]
  ];
  return (
    <div className="jp-Convect-daskCurves">
      {curves.map(([label, lines]) => (
        <Curve key={label} label={label} lines={lines} samples={samples} />
      ))}
    </div>
  );
}

function Curve(props: {
  label: string;
  lines: readonly [Quantity, string][];
  samples: readonly IDaskSample[];
}): JSX.Element {
  const { label, lines, samples } = props;
  const trans = useTrans();
  const option = React.useCallback(
    (colours: IColours) => curveOption(samples, lines, colours),
    // The lines of a curve are always the same, in one language.
    // eslint-disable-next-line react-hooks/exhaustive-deps
    [samples, label]
  );
  return (
    <figure>
      <figcaption>{label}</figcaption>
      <Chart
        option={option}
        height={96}
        label={trans.__('%1 over time, %2 points', label, samples.length)}
      />
    </figure>
  );
}

function curveOption(
  samples: readonly IDaskSample[],
  lines: readonly [Quantity, string][],
  colours: IColours
) {
  const last = samples[samples.length - 1].time;
  const format = lines[0][0] === 'memory' ? formatSize : formatNumber;
  const axis = {
    axisLine: { lineStyle: { color: colours.line } },
    axisLabel: { color: colours.faint, hideOverlap: true },
    splitLine: { lineStyle: { color: colours.line } }
  };
  return {
    color: colours.series,
    grid: { left: 4, right: 12, top: 8, bottom: 0, containLabel: true },
    legend: {
      show: lines.length > 1,
      top: -4,
      right: 0,
      textStyle: { color: colours.text }
    },
    tooltip: {
      trigger: 'axis',
      backgroundColor: colours.background,
      borderColor: colours.line,
      textStyle: { color: colours.text },
      valueFormatter: (value: unknown) =>
        typeof value === 'number' ? format(value) : '–'
    },
    xAxis: {
      ...axis,
      type: 'value',
      min: 'dataMin',
      max: 0,
      axisLabel: {
        ...axis.axisLabel,
        formatter: (value: number) => `${formatNumber(value)} s`
      },
      splitNumber: 3
    },
    yAxis: {
      ...axis,
      type: 'value',
      min: 0,
      minInterval: lines[0][0] === 'cpu' ? undefined : 1,
      splitNumber: 2,
      axisLabel: { ...axis.axisLabel, formatter: format }
    },
    series: lines.map(([quantity, name]) => ({
      type: 'line',
      name,
      showSymbol: false,
      step: quantity === 'workers' ? 'end' : undefined,
      data: samples.map(sample => [
        Math.round(sample.time - last),
        sample[quantity] ?? '-'
      ])
    }))
  };
}
