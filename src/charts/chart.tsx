import { LineChart, ParallelChart, ScatterChart } from 'echarts/charts';
import {
  AriaComponent,
  DataZoomInsideComponent,
  GridComponent,
  LegendComponent,
  ParallelComponent,
  TooltipComponent,
  VisualMapContinuousComponent
} from 'echarts/components';
import * as echarts from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import * as React from 'react';

import type { IColours } from './colours';
import { useColours } from './colours';

echarts.use([
  AriaComponent,
  CanvasRenderer,
  DataZoomInsideComponent,
  GridComponent,
  LegendComponent,
  LineChart,
  ParallelChart,
  ParallelComponent,
  ScatterChart,
  TooltipComponent,
  VisualMapContinuousComponent
]);

export interface IChartProps {
  /** What to draw, in the colours of the theme. */
  option: (colours: IColours) => echarts.EChartsCoreOption;
  /** What it shows, for those who do not see it. */
  label: string;
  height: number;
  /** Called with the name of what the pointer is on, or null. */
  onHover?: (name: string | null) => void;
  onClick?: (name: string) => void;
  /** Called with the places in the data that are left between the marks on the axes. */
  onBrush?: (kept: number[] | null) => void;
  /** What to bring out: a place in the data. */
  highlighted?: number | null;
}

/** A chart that follows the theme and the size of its place. */
export default function Chart(props: IChartProps): JSX.Element {
  const { option, label, height, onHover, onClick, onBrush, highlighted } =
    props;
  const place = React.useRef<HTMLDivElement>(null);
  const chart = React.useRef<echarts.ECharts | null>(null);
  const colours = useColours();
  const handlers = React.useRef({ onHover, onClick, onBrush });
  React.useEffect(() => {
    handlers.current = { onHover, onClick, onBrush };
  });

  React.useEffect(() => {
    const element = place.current;
    if (!element) {
      return;
    }
    const made = echarts.init(element);
    chart.current = made;
    made.on('mouseover', event => handlers.current.onHover?.(event.name));
    made.on('mouseout', () => handlers.current.onHover?.(null));
    made.on('click', event => handlers.current.onClick?.(event.name));
    made.on('axisareaselected', () => {
      handlers.current.onBrush?.(keptBetweenMarks(made));
    });
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.dispose();
      chart.current = null;
    };
  }, []);

  React.useEffect(() => {
    chart.current?.setOption(
      {
        animation: false,
        aria: { enabled: true, label: { description: label } },
        ...option(colours)
      },
      { replaceMerge: ['series', 'visualMap'] }
    );
  }, [option, label, colours]);

  React.useEffect(() => {
    const made = chart.current;
    made?.dispatchAction({ type: 'downplay' });
    if (made && highlighted !== null && highlighted !== undefined) {
      const where = { seriesIndex: 0, dataIndex: highlighted };
      made.dispatchAction({ type: 'highlight', ...where });
    }
  }, [highlighted, option]);

  return <div ref={place} className="jp-Convect-chart" style={{ height }} />;
}

interface IParallelSeries {
  getRawIndicesByActiveState(state: 'active' | 'inactive'): number[];
  getData(): { count(): number };
}

/** Null when nothing is left out. */
function keptBetweenMarks(chart: echarts.ECharts): number[] | null {
  // The public interface tells that something was marked, but not what is left.
  const model = (
    chart as unknown as {
      getModel(): { getSeriesByIndex(index: number): IParallelSeries };
    }
  ).getModel();
  const series = model.getSeriesByIndex(0);
  const kept = series.getRawIndicesByActiveState('active');
  const left = series.getRawIndicesByActiveState('inactive');
  return left.length === 0 ? null : kept;
}
