import { emptyStory, tell } from '../events';

describe('tell', () => {
  it('follows the cells of a notebook to the one that fails', () => {
    const story = emptyStory();
    tell(story, [
      { time: 1, type: 'step.start' },
      { time: 1, type: 'cell.start', cell: 1, index: 0, total: 3 },
      { time: 2, type: 'cell.end', index: 0, seconds: 1 },
      { time: 2, type: 'cell.start', cell: 2, index: 2, total: 3 },
      { time: 2, type: 'cell.output', index: 2, kind: 'stdout', text: 'hm' }
    ]);
    tell(story, [
      {
        time: 5,
        type: 'cell.error',
        index: 2,
        name: 'ValueError',
        value: 'bad',
        traceback: 'line 1'
      }
    ]);
    expect(story.total).toBe(3);
    expect(story.cells.map(({ state }) => state)).toEqual([
      'succeeded',
      'failed'
    ]);
    expect(story.cells[1]).toMatchObject({
      index: 2,
      number: 2,
      output: 'hm',
      seconds: 3,
      error: { name: 'ValueError' }
    });
  });

  it('keeps every point of a metric', () => {
    const story = emptyStory();
    tell(story, [
      { time: 1, type: 'metric', name: 'loss', value: 2, step: 0 },
      { time: 2, type: 'metric', name: 'loss', value: 1, step: 1 },
      { time: 3, type: 'something.newer' }
    ]);
    expect(story.metrics.get('loss')).toEqual([
      { time: 1, step: 0, value: 2 },
      { time: 2, step: 1, value: 1 }
    ]);
  });

  it('gathers what a step used, and when and by what its log was written', () => {
    const story = emptyStory();
    tell(story, [
      { time: 1, type: 'log', offset: 0, stream: 'stdout' },
      { time: 2, type: 'usage', cpu: 0.5, memory: 1e6 },
      { time: 4, type: 'usage', cpu: 1.5, memory: 2e6 },
      { time: 5, type: 'log', offset: 7, stream: null }
    ]);
    expect(story.usage.get('cpu')?.map(({ value }) => value)).toEqual([
      0.5, 1.5
    ]);
    expect([...story.usage.keys()]).toEqual(['cpu', 'memory']);
    expect(story.marks).toEqual([
      { offset: 0, time: 1, stream: 'stdout' },
      { offset: 7, time: 5, stream: null }
    ]);
  });
});
