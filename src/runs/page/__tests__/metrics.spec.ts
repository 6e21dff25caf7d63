import type { IColours } from '../../../charts';
import { emptyStory, tell } from '../events';
import { curvesOption, smoothed } from '../metrics';

const colours = { series: [], bad: 'red' } as unknown as IColours;

describe('the curve of a metric', () => {
  const story = emptyStory();
  const values = [0.4, NaN, 0.2, Infinity, null];
  tell(
    story,
    values.map((value, step) => ({
      time: step,
      type: 'metric',
      name: 'loss',
      value,
      step
    }))
  );
  const points = story.metrics.get('loss') ?? [];

  it('keeps what is not finite, and takes an old null for NaN', () => {
    expect(points.map(({ value }) => value)).toEqual([
      0.4,
      NaN,
      0.2,
      Infinity,
      NaN
    ]);
  });

  it('has gaps there, and a mark for each, never a zero', () => {
    const curves = [{ name: 'loss', points }];
    const [line, marks] = curvesOption(curves, colours).series;
    expect(line.data).toEqual([
      [0, 0.4],
      [1, '-'],
      [2, 0.2],
      [3, '-'],
      [4, '-']
    ]);
    expect(marks.data).toEqual([
      { value: [1, 0], shown: 'NaN' },
      { value: [3, 1], shown: 'Infinity' },
      { value: [4, 0], shown: 'NaN' }
    ]);
  });

  it('has a gap where there is no logarithm', () => {
    const curve = {
      name: 'a',
      points: [-1, 0, 2].map((value, step) => ({ time: 0, step, value }))
    };
    const look = { isLog: true, smoothing: 0 };
    const { series, yAxis } = curvesOption([curve], colours, look);
    expect(yAxis[0].type).toBe('log');
    expect(series[0].data).toEqual([
      [0, '-'],
      [1, '-'],
      [2, 2]
    ]);
  });

  it('is smoothed without a pull to zero, and never over what is not finite', () => {
    expect(
      smoothed([1, 1, NaN, 1], 0.9).map(value => Number(value.toFixed(9)))
    ).toEqual([1, 1, NaN, 1]);
    expect(smoothed([0, 1], 0.5)[1]).toBeCloseTo(2 / 3);
    expect(smoothed([3, 5], 0)).toEqual([3, 5]);
  });
});
