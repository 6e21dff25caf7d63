import type {
  AnyNumber,
  IConvectApi,
  IAttemptKey,
  IStepEvent
} from '../../api';
import { comparable } from '../../api';
import type { IPiece } from './tail';
import { Tail } from './tail';

/** What a cell of a running notebook has done so far. */
export interface ICell {
  /** Its place in the notebook, all cells counted. */
  index: number;
  /** Its place among the code cells of the source, from 1; 0 for the one that sets the parameters. */
  number: number;
  state: 'running' | 'succeeded' | 'failed' | 'cancelled';
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

/** From a byte of the log on: when it was written, and by what. */
export interface ILogMark {
  offset: number;
  time: number;
  stream: string | null;
}

/** All that the events of a step tell. */
export interface IStepStory {
  /** In the order of the log. */
  marks: ILogMark[];
  /** What the step used of the machine: `cpu`, `memory`, `gpu`, `gpu_memory`. */
  usage: Map<string, IMetricPoint[]>;
  cells: ICell[];
  /** Code cells of the whole notebook. */
  total: number;
  metrics: Map<string, IMetricPoint[]>;
}

/** More output of a cell than that is left to the notebook. */
const MAX_OUTPUT = 4000;

export function emptyStory(): IStepStory {
  return {
    cells: [],
    total: 0,
    marks: [],
    metrics: new Map(),
    usage: new Map()
  };
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
      case 'metric':
        add(story.metrics, String(event.name), event);
        break;
      case 'usage':
        for (const name of USED) {
          if (event[name] !== undefined) {
            add(story.usage, name, { time: event.time, value: event[name] });
          }
        }
        break;
      case 'log':
        story.marks.push({
          offset: Number(event.offset),
          time: event.time,
          stream: event.stream ? String(event.stream) : null
        });
        break;
    }
  }
}

const USED = ['cpu', 'memory', 'gpu', 'gpu_memory'];

function add(
  curves: Map<string, IMetricPoint[]>,
  name: string,
  { time, step, value }: { time: number; step?: unknown; value?: unknown }
): void {
  const points = curves.get(name) ?? [];
  points.push({
    time,
    step: typeof step === 'number' ? step : null,
    value: comparable(value) === null ? NaN : (value as AnyNumber)
  });
  curves.set(name, points);
}

/** What one attempt did, as far as it is. */
export class EventsModel extends Tail {
  constructor(
    private readonly api: IConvectApi,
    readonly key: IAttemptKey
  ) {
    super();
  }

  readonly story = emptyStory();

  protected async read(offset: number | null): Promise<IPiece> {
    const from = offset ?? 0;
    const chunk = await this.api.events(this.key, { offset: from });
    tell(this.story, chunk.events);
    return { ...chunk, grown: chunk.offset > from };
  }
}
