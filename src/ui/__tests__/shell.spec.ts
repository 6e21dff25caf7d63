import { execFileSync } from 'child_process';

import { commandLine } from '../shell';

describe('commandLine', () => {
  it('leaves plain words readable', () => {
    const words = ['convect', 'runs', 'shell', '20261116-1-ab', 'train'];
    expect(commandLine(words)).toBe('convect runs shell 20261116-1-ab train');
  });

  it('hands over any word as it is', () => {
    const words = ["it's", '$(rm -rf /)', '`x`', 'a b', '', '名;\n', '\\"'];
    const printed = execFileSync('sh', [
      '-c',
      `printf '%s\\0' ${commandLine(words)}`
    ]);
    expect(printed.toString().split('\0').slice(0, -1)).toEqual(words);
  });
});
