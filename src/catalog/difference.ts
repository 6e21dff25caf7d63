/** One line of a unified diff. */
export interface IDiffLine {
  kind: 'added' | 'removed' | 'same' | 'place';
  text: string;
}

/** The lines of a unified diff without its heading. */
export function linesOf(diff: string): IDiffLine[] {
  const lines = diff.replace(/\n$/, '').split('\n');
  const start = lines.findIndex(line => line.startsWith('@@'));
  return start < 0 ? [] : lines.slice(start).map(lineOf);
}

function lineOf(line: string): IDiffLine {
  switch (line[0]) {
    case '@':
      return { kind: 'place', text: line };
    case '+':
      return { kind: 'added', text: line.slice(1) };
    case '-':
      return { kind: 'removed', text: line.slice(1) };
    default:
      return { kind: 'same', text: line.slice(1) };
  }
}
