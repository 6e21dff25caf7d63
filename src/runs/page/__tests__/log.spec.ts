import { until } from '../../../__tests__/until';
import type { ConvectApi } from '../../../api';
import { ConvectError } from '../../../api';
import { LogBuffer, LogModel, LogSearch, MAX_LETTERS, MAX_LINES } from '../log';
import { plain } from '../plain';

function lines(...pieces: string[]): string[] {
  const buffer = new LogBuffer();
  pieces.forEach(piece => buffer.push(piece));
  return buffer.lines;
}

describe('LogBuffer', () => {
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

describe('LogModel', () => {
  const key = { run: 'r', step: 's', attempt: 1 };

  it('reads a long log from its end, by whole lines, and goes on from there', async () => {
    const line = `${'x'.repeat(1023)}\n`;
    const offsets: number[] = [];
    const api = {
      logEnd: async (_: unknown, last: number) => ({
        text: `half a line\n${line.repeat(last / 1024)}`.slice(-last),
        offset: 10e6,
        complete: false
      }),
      log: async (_: unknown, offset: number) => {
        offsets.push(offset);
        return { text: 'the end\n', offset: offset + 8, complete: true };
      }
    } as unknown as ConvectApi;
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
      logEnd: () => {
        asked += 1;
        return answers[asked - 1]();
      }
    } as unknown as ConvectApi;
    const log = new LogModel(api, key);
    await until(() => log.isComplete);
    expect(asked).toBe(2);
    expect(log.error?.message).toBe('There is no run r.');
    log.dispose();
  });
});
