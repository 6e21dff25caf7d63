import type { IConvectApi, IAttemptKey } from '../../api';
import type { ILogMark } from './events';
import { plain } from './plain';
import type { IPiece } from './tail';
import { Tail } from './tail';

/** More lines than that, or letters, are not kept; the oldest go first. */
export const MAX_LINES = 500000;
export const MAX_LETTERS = 100e6;

/** How much of the end of a log is read at first; the server gives no more at once. */
const END = 4 << 20;

/** A longer line is shown cut off. */
export const MAX_LENGTH = 10000;

const CHUNK = 1 << 20;

/**
 * Text as a terminal shows it, in lines: a carriage return starts the line
 * again, so of a progress bar only what it says last is left.
 */
export class LogBuffer {
  /** Complete lines and, last, the one that is being written. */
  readonly lines: string[] = [''];

  /** At which byte of the log each line begins, or began to be written anew. */
  readonly starts: number[] = [0];

  /** How many lines were dropped at the start. */
  dropped = 0;

  /** More text, which begins at that byte of the log. */
  push(text: string, offset = 0): void {
    const pieces = text.split('\n');
    const { lines, starts } = this;
    let at = offset;
    if (lines[lines.length - 1] === '') {
      starts[lines.length - 1] = at;
    }
    lines[lines.length - 1] = overwrite(lines[lines.length - 1] + pieces[0]);
    for (let index = 1; index < pieces.length; index += 1) {
      lines[lines.length - 1] = finish(lines[lines.length - 1]);
      at += bytesOf(pieces[index - 1]) + 1;
      lines.push(overwrite(pieces[index]));
      starts.push(at);
    }
    this._letters += text.length;
    if (lines.length > MAX_LINES || this._letters > MAX_LETTERS) {
      this.dropOldest();
    }
  }

  /** In large steps, since each moves all that is left. */
  private dropOldest(): void {
    const { lines } = this;
    this._letters = lines.reduce((sum, line) => sum + line.length + 1, 0);
    const least =
      lines.length > MAX_LINES ? lines.length - Math.floor(MAX_LINES * 0.9) : 0;
    let surplus = 0;
    let letters = this._letters;
    while (
      surplus < lines.length - 1 &&
      (surplus < least || letters > MAX_LETTERS * 0.9)
    ) {
      letters -= lines[surplus].length + 1;
      surplus += 1;
    }
    lines.splice(0, surplus);
    this.starts.splice(0, surplus);
    this.dropped += surplus;
    this._letters = letters;
  }

  private _letters = 0;
}

const encoder = new TextEncoder();

/** How long a text is in UTF-8. */
function bytesOf(text: string): number {
  return /^[\0-\x7f]*$/.test(text) ? text.length : encoder.encode(text).length;
}

/** What is known of the place in a log, of marks in its order; null for nothing. */
export function markAt(
  marks: readonly ILogMark[],
  offset: number
): ILogMark | null {
  let [low, high] = [0, marks.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (marks[middle].offset <= offset) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return marks[low - 1] ?? null;
}

/** What is left of a line after its carriage returns; the last one may still be followed by `\n`. */
function overwrite(line: string): string {
  if (!line.includes('\r')) {
    return line;
  }
  const open = line.endsWith('\r');
  const written = line.split('\r').filter(part => part !== '');
  return (written[written.length - 1] ?? '') + (open ? '\r' : '');
}

function finish(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

/** Finds a text, letter case aside, in a log that grows: what was looked through is not again. */
export class LogSearch {
  constructor(text: string) {
    this._wanted = text.toLowerCase();
  }

  /** The numbers of the lines that hold the text. */
  readonly hits: number[] = [];

  update({ lines, dropped }: LogBuffer): this {
    if (!this._wanted) {
      return this;
    }
    if (dropped !== this._dropped) {
      this._dropped = dropped;
      this._next = 0;
      this.hits.length = 0;
    }
    // The last line of the last time may have been written on since.
    while (this.hits[this.hits.length - 1] >= this._next) {
      this.hits.pop();
    }
    for (let index = this._next; index < lines.length; index += 1) {
      if (plain(lines[index]).toLowerCase().includes(this._wanted)) {
        this.hits.push(index);
      }
    }
    this._next = Math.max(0, lines.length - 1);
    return this;
  }

  private _dropped = 0;
  private _next = 0;
  private _wanted: string;
}

/** The log of one attempt, as far as it is. */
export class LogModel extends Tail {
  constructor(
    private readonly api: IConvectApi,
    readonly key: IAttemptKey,
    /** Read it from its beginning, however long it is. */
    private readonly isWhole = false,
    /** Of a distributed step, only what the replica of this rank printed. */
    readonly replica?: number
  ) {
    super();
  }

  readonly buffer = new LogBuffer();

  /** Bytes at the beginning that were not read: most logs are read for their end. */
  get skipped(): number {
    return this._skipped;
  }

  protected async read(offset: number | null): Promise<IPiece> {
    if (offset === null && !this.isWhole) {
      return this.readEnd();
    }
    const from = offset ?? 0;
    const { replica } = this;
    const chunk = await this.api.log(this.key, {
      offset: from,
      limit: CHUNK,
      replica
    });
    if (chunk.text) {
      this.buffer.push(chunk.text, from);
    }
    return { ...chunk, grown: chunk.offset > from };
  }

  private async readEnd(): Promise<IPiece> {
    const chunk = await this.api.log(this.key, {
      last: END,
      replica: this.replica
    });
    const read = bytesOf(chunk.text);
    // A cut letter is shown as another one, which is longer.
    this._skipped = read < END - 8 ? 0 : Math.max(0, chunk.offset - read);
    const whole = this._skipped > 0 ? chunk.text.indexOf('\n') + 1 : 0;
    const start = chunk.offset - bytesOf(chunk.text.slice(whole));
    this.buffer.push(chunk.text.slice(whole), start);
    return { ...chunk, grown: chunk.text !== '' };
  }

  private _skipped = 0;
}
