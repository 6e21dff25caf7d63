import { LogBuffer, LogSearch, MAX_LINES } from '../log';
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
