import {
  formatDuration,
  formatJson,
  formatNumber,
  formatParameters,
  formatResources,
  formatSize,
  formatValue
} from '../format';

describe('formatting', () => {
  it.each([
    [0.04, '0.0 s'],
    [9.94, '9.9 s'],
    [59.4, '59 s'],
    [59.6, '1 min 00 s'],
    [3599.7, '1 h 00 min'],
    [7265, '2 h 01 min'],
    [90061, '1 d 01 h']
  ])('says %d seconds as %s', (seconds, text) => {
    expect(formatDuration(seconds)).toBe(text);
  });

  it('shows no more digits than matter', () => {
    expect(formatNumber(0.123456789)).toBe('0.12346');
    expect(formatNumber(123456)).toBe('123456');
  });

  it('shows integers that no number holds', () => {
    const digits = (text: string) => ({ $numberInteger: text });
    const googol = digits('123'.padEnd(400, '0'));
    expect(formatValue(digits('9007199254740993'))).toBe('9007199254740993');
    expect(formatValue(googol)).toBe('1.23e+399');
    expect(formatValue(digits('-1'.padEnd(402, '0')))).toBe('-1e+400');
    expect(formatJson({ n: [digits('-9007199254740993')] })).toBe(
      '{"n":[-9007199254740993]}'
    );
  });

  it('shows parameters as one line', () => {
    expect(formatParameters({ lr: 0.1, name: 'a', list: [1] })).toBe(
      'lr=0.1, name=a, list=[1]'
    );
    expect(formatParameters({ mode: 'x, y', a: 9, empty: '' })).toBe(
      'mode="x, y", a=9, empty=""'
    );
  });

  it('names what is not a finite number, however deep it is', () => {
    expect(formatParameters({ a: NaN, b: -Infinity, c: [NaN, 'NaN'] })).toBe(
      'a=NaN, b=-Infinity, c=[NaN,"NaN"]'
    );
    expect(formatJson({ loss: Infinity }, 2)).toBe('{\n  "loss": Infinity\n}');
  });

  it('shows resources as one line', () => {
    const resources = {
      cpu: { request: '2', limit: '4' },
      gpu: { count: 1, type: 'A100' },
      shared_memory: '1Gi'
    };
    expect(formatResources(resources)).toBe(
      'cpu 2, gpu 1 A100, shared_memory 1Gi'
    );
    expect(formatResources()).toBe('');
  });

  it.each([
    [999, '999 B'],
    [1500, '1.5 kB'],
    [52000000, '52.0 MB']
  ])('says %d bytes as %s', (bytes, text) => {
    expect(formatSize(bytes)).toBe(text);
  });

  it('says durations in the language of the page', () => {
    document.documentElement.lang = 'zh-CN';
    expect(formatDuration(0.42)).toBe('0.4秒');
    expect(formatDuration(4)).toBe('4.0秒');
    expect(formatDuration(185)).toBe('3分钟 05秒');
    expect(formatDuration(7800)).toBe('2小时 10分钟');
    document.documentElement.lang = 'de';
    expect(formatSize(1_250_000)).toBe('1,3 MB');
    document.documentElement.lang = '';
    expect(formatDuration(185)).toBe('3 min 05 s');
  });
});
