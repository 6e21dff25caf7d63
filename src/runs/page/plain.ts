// eslint-disable-next-line no-control-regex
const ESCAPES = /\x1b\[[0-9;?]*[ -/]*[@-~]/g;

/** The text of a line without its colours. */
export function plain(line: string): string {
  return line.includes('\x1b') ? line.replace(ESCAPES, '') : line;
}
