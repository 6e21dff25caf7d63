import type { ConvectApi, IAttemptKey } from '../../api';
import { plain } from './plain';
import { Tail } from './tail';

/** More lines than that are not kept; the oldest go first. */
export const MAX_LINES = 500000;

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

  /** How many lines were dropped at the start. */
  dropped = 0;

  push(text: string): void {
    const pieces = text.split('\n');
    const { lines } = this;
    lines[lines.length - 1] = overwrite(lines[lines.length - 1] + pieces[0]);
    for (let index = 1; index < pieces.length; index += 1) {
      lines[lines.length - 1] = finish(lines[lines.length - 1]);
      lines.push(overwrite(pieces[index]));
    }
    if (lines.length > MAX_LINES) {
      // In large steps, since each moves all that is left.
      const surplus = lines.length - Math.floor(MAX_LINES * 0.9);
      lines.splice(0, surplus);
      this.dropped += surplus;
    }
  }
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
    private readonly api: ConvectApi,
    readonly key: IAttemptKey
  ) {
    super();
  }

  readonly buffer = new LogBuffer();

  protected async read(
    offset: number
  ): Promise<{ offset: number; complete: boolean; grown: boolean }> {
    const chunk = await this.api.log(this.key, offset, CHUNK);
    if (chunk.text) {
      this.buffer.push(chunk.text);
    }
    return { ...chunk, grown: chunk.offset > offset };
  }
}
