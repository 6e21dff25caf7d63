import type { IColours } from '../../../charts';
import { emptyStory, tell } from '../events';
import { lineOption } from '../metrics';

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
    const [line, marks] = lineOption('loss', points, colours).series;
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
});
