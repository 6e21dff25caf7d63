import { until } from '../../../__tests__/until';
import type { IConvectApi } from '../../../api';
import { ConvectError } from '../../../api';
import {
  LogBuffer,
  LogModel,
  LogSearch,
  markAt,
  MAX_LETTERS,
  MAX_LINES
} from '../log';
import { plain } from '../plain';

function lines(...pieces: string[]): string[] {
  const buffer = new LogBuffer();
  pieces.forEach(piece => buffer.push(piece));
  return buffer.lines;
}

describe('LogBuffer', () => {
  it('knows at which byte each line begins, and so when and by what it was written', () => {
    const buffer = new LogBuffer();
    buffer.push('ab\nç', 10);
    buffer.push('d\nend\n', 15);
    expect(buffer.lines).toEqual(['ab', 'çd', 'end', '']);
    expect(buffer.starts).toEqual([10, 13, 17, 21]);
    const marks = [
      { offset: 10, time: 1, stream: 'stdout' },
      { offset: 17, time: 2, stream: 'stderr' }
    ];
    const of = (line: number) => markAt(marks, buffer.starts[line])?.stream;
    expect([0, 1, 2].map(of)).toEqual(['stdout', 'stdout', 'stderr']);
    expect(markAt(marks, 9)).toBeNull();
  });

  it('joins lines that arrive in pieces', () => {
    expect(lines('a', 'b\nc', '\n')).toEqual(['ab', 'c', '']);
  });

  it('keeps of a progress bar what it says last', () => {
    expect(lines('0%\r50%', '\r100%', '\ndone\n')).toEqual([
      '100%',
      'done',
      ''
    ]);
  });

  it('knows the line ends of Windows, also when they are cut in two', () => {
    expect(lines('a\r\nb\r', '\nc')).toEqual(['a', 'b', 'c']);
  });

  it('shows the bar while it is being written', () => {
    expect(lines('0%\r50%\r')).toEqual(['50%\r']);
  });

  it('lets the oldest lines go when there are too many', () => {
    const buffer = new LogBuffer();
    buffer.push('x\n'.repeat(MAX_LINES + 10));
    expect(buffer.lines.length).toBeLessThanOrEqual(MAX_LINES);
    expect(buffer.dropped + buffer.lines.length).toBe(MAX_LINES + 11);
  });
});

describe('a log of very long lines', () => {
  it('lets the oldest go, too', () => {
    const buffer = new LogBuffer();
    const line = `${'x'.repeat(1 << 20)}\n`;
    for (let index = 0; index < 120; index += 1) {
      buffer.push(line);
    }
    const letters = buffer.lines.reduce((sum, each) => sum + each.length, 0);
    expect(letters).toBeLessThanOrEqual(MAX_LETTERS);
    expect(buffer.dropped + buffer.lines.length).toBe(121);
  });
});

describe('LogSearch', () => {
  it('sees no colours and no letter case', () => {
    const buffer = new LogBuffer();
    buffer.push('\x1b[31mErr\x1b[1mor\x1b[0m here\nfine\n');
    expect(plain(buffer.lines[0])).toBe('Error here');
    expect(new LogSearch('ERROR').update(buffer).hits).toEqual([0]);
    expect(new LogSearch('').update(buffer).hits).toEqual([]);
  });

  it('goes on where it was, and looks again at the line that was open', () => {
    const buffer = new LogBuffer();
    const search = new LogSearch('ab');
    buffer.push('ab\na');
    expect(search.update(buffer).hits).toEqual([0]);
    buffer.push('b\rx\nab');
    expect(search.update(buffer).hits).toEqual([0, 2]);
    expect(search.update(buffer).hits).toEqual([0, 2]);
  });
});

type Asked = { last?: number; offset?: number };

describe('LogModel', () => {
  const key = { run: 'r', step: 's', attempt: 1 };

  it('reads a long log from its end, by whole lines, and goes on from there', async () => {
    const line = `${'x'.repeat(1023)}\n`;
    const offsets: number[] = [];
    const api = {
      log: async (_: unknown, { last, offset = 0 }: Asked) => {
        if (last) {
          const text = `half a line\n${line.repeat(last / 1024)}`.slice(-last);
          return { text, offset: 10e6, complete: false };
        }
        offsets.push(offset);
        return { text: 'the end\n', offset: offset + 8, complete: true };
      }
    } as unknown as IConvectApi;
    const log = new LogModel(api, key);
    await until(() => log.isComplete);
    expect(offsets).toEqual([10e6]);
    expect(log.skipped).toBe(10e6 - (4 << 20));
    expect(log.buffer.lines.slice(-2)).toEqual(['the end', '']);
    expect(log.buffer.lines[0]).toHaveLength(1023);
    log.dispose();
  });

  it('goes on after an answer that is none, and ends when the run is gone', async () => {
    const answers = [
      () => Promise.reject(new SyntaxError('Unexpected token <')),
      () => Promise.reject(new ConvectError('There is no run r.', 404, 'x'))
    ];
    let asked = 0;
    const api = {
      log: () => {
        asked += 1;
        return answers[asked - 1]();
      }
    } as unknown as IConvectApi;
    const log = new LogModel(api, key);
    await until(() => log.isComplete);
    expect(asked).toBe(2);
    expect(log.error?.message).toBe('There is no run r.');
    log.dispose();
  });

  it('reads on from where it was when it is looked at again', async () => {
    const offsets: (number | null)[] = [];
    const api = {
      log: async (_: unknown, { last, offset = 0 }: Asked) => {
        if (last) {
          offsets.push(null);
          return { text: 'a\n', offset: 2, complete: false };
        }
        offsets.push(offset);
        return { text: 'b\n', offset: offset + 2, complete: offset > 3 };
      }
    } as unknown as IConvectApi;
    const log = new LogModel(api, { run: 'r', step: 's', attempt: 1 });
    log.isPaused = true;
    await new Promise(resolve => setTimeout(resolve));
    expect(offsets).toEqual([]);
    log.isPaused = false;
    await until(() => log.isComplete);
    expect(offsets).toEqual([null, 2, 4]);
    log.dispose();
  });
});
