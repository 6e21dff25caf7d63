import { argumentsText, valueOf } from '../values';

describe('what is typed into the form of a training job', () => {
  it.each([
    ['whole', ' 3 ', 3],
    ['whole', 'three', undefined],
    ['whole', '-1', undefined],
    ['whole', '', null],
    ['amount', '2', 2],
    ['amount', '500m', '500m'],
    ['text', ' a b ', 'a b'],
    ['text', '  ', null],
    ['list', '--轮\n10\n\n', ['--轮', '10']],
    ['list', '\n', null]
  ] as const)('%s %j is %j', (kind, text, value) => {
    expect(valueOf(kind, text)).toEqual(value);
  });

  it('shows arguments one in each line', () => {
    expect(argumentsText(['a', 'b c'])).toBe('a\nb c');
    expect(argumentsText(null)).toBe('');
  });
});
