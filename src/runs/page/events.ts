import type { AnyNumber, ConvectApi, IAttemptKey, IStepEvent } from '../../api';
import { comparable } from '../../api';
import type { IPiece } from './tail';
import { Tail } from './tail';

/** What a cell of a running notebook has done so far. */
export interface ICell {
  /** Its place in the notebook, all cells counted. */
  index: number;
  /** Its place among the code cells of the source, from 1; 0 for the one that sets the parameters. */
  number: number;
  state: 'running' | 'succeeded' | 'failed';
  started: number;
  seconds: number | null;
  output: string;
  error: { name: string; value: string; traceback: string } | null;
}

export interface IMetricPoint {
  time: number;
  step: number | null;
  value: AnyNumber;
}

/** All that the events of a step tell. */
export interface IStepStory {
  cells: ICell[];
  /** Code cells of the whole notebook. */
  total: number;
  metrics: Map<string, IMetricPoint[]>;
}

/** More output of a cell than that is left to the notebook. */
const MAX_OUTPUT = 4000;

export function emptyStory(): IStepStory {
  return { cells: [], total: 0, metrics: new Map() };
}

/** Goes on with the story; `story` is changed. */
export function tell(story: IStepStory, events: readonly IStepEvent[]): void {
  for (const event of events) {
    const index = Number(event.index);
    const cell = story.cells[story.cells.length - 1];
    switch (event.type) {
      case 'cell.start':
        story.total = Number(event.total);
        story.cells.push({
          index,
          number: Number(event.cell),
          state: 'running',
          started: event.time,
          seconds: null,
          output: '',
          error: null
        });
        break;
      case 'cell.output':
        if (cell?.index === index && cell.output.length < MAX_OUTPUT) {
          cell.output += String(event.text ?? '');
        }
        break;
      case 'cell.end':
        if (cell?.index === index) {
          cell.state = 'succeeded';
          cell.seconds = Number(event.seconds);
        }
        break;
      case 'cell.error':
        if (cell?.index === index) {
          cell.state = 'failed';
          cell.seconds = event.time - cell.started;
          cell.error = {
            name: String(event.name),
            value: String(event.value),
            traceback: String(event.traceback)
          };
        }
        break;
      case 'metric': {
        const name = String(event.name);
        const points = story.metrics.get(name) ?? [];
        points.push({
          time: event.time,
          step: typeof event.step === 'number' ? event.step : null,
          value:
            comparable(event.value) === null ? NaN : (event.value as AnyNumber)
        });
        story.metrics.set(name, points);
        break;
      }
    }
  }
}

/** What one attempt did, as far as it is. */
export class EventsModel extends Tail {
  constructor(
    private readonly api: ConvectApi,
    readonly key: IAttemptKey
  ) {
    super();
  }

  readonly story = emptyStory();

  protected async read(offset: number | null): Promise<IPiece> {
    const from = offset ?? 0;
    const chunk = await this.api.events(this.key, from);
    tell(this.story, chunk.events);
    return { ...chunk, grown: chunk.offset > from };
  }
}
