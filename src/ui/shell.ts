/** A word as a shell takes it, whatever is in it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word)
    ? word
    : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** A command line of these words. */
export function commandLine(words: readonly string[]): string {
  return words.map(quoted).join(' ');
}
