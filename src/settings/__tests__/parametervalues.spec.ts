import { nullTranslator } from '@jupyterlab/translation';

import {
  axisText,
  countOf,
  looksLikeSeveral,
  parseAxis,
  parseValue,
  sizeOf
} from '../parametervalues';

const trans = nullTranslator.load('');

describe('parseValue', () => {
  it.each([
    ['integer', '12', 12],
    ['integer', ' -3 ', -3],
    ['number', '1e-3', 0.001],
    ['boolean', 'true', true],
    ['string', ' as it is ', ' as it is '],
    ['array', '[1, "a"]', [1, 'a']],
    ['object', '{"a": 1}', { a: 1 }],
    [null, '3', 3],
    [null, 'words', 'words']
  ] as const)('reads %s from %s', (type, text, value) => {
    expect(parseValue(type, text, trans)).toEqual({ value });
  });

  it.each([
    ['integer', '1.5'],
    ['integer', 'abc'],
    ['integer', '12345678901234567890'],
    ['number', ''],
    ['number', 'Infinity'],
    ['boolean', 'yes'],
    ['array', '{"a": 1}'],
    ['object', '[1]'],
    ['object', '{broken']
  ] as const)('refuses as %s: %s', (type, text) => {
    expect(parseValue(type, text, trans)).toHaveProperty('error');
  });
});

describe('parseAxis', () => {
  it.each([
    ['number', '0.05, 0.1, 0.2', [0.05, 0.1, 0.2]],
    ['number', '0.05，0.1', [0.05, 0.1]],
    ['integer', '[1, 2]', [1, 2]],
    ['string', 'adam, sgd', ['adam', 'sgd']],
    ['boolean', 'true, false', [true, false]],
    ['integer', '2..5', { from: 2, to: 5, step: 1 }],
    ['number', '0..1 step 0.25', { from: 0, to: 1, step: 0.25 }]
  ] as const)('reads several of %s from %s', (type, text, value) => {
    expect(parseAxis(type, text, 'grid', trans)).toEqual({ value });
  });

  it('takes an open range only for random samples', () => {
    expect(parseAxis('number', '0..1', 'grid', trans)).toHaveProperty('error');
    expect(parseAxis('number', '0.001..1 log', 'random', trans)).toEqual({
      value: { min: 0.001, max: 1, log: true, type: 'number' }
    });
    expect(parseAxis('number', '0..1 log', 'random', trans)).toHaveProperty(
      'error'
    );
  });

  it.each(['', ',', '5..2', '1..2 step 0', '1, two', '[1, 2', '[]'])(
    'refuses %s',
    text => {
      expect(parseAxis('integer', text, 'grid', trans)).toHaveProperty('error');
    }
  );
});

describe('the size of a sweep', () => {
  it('is not fooled by the rounding of steps', () => {
    expect(countOf({ from: 0, to: 1, step: 0.1 })).toBe(11);
    expect(countOf({ from: 0.1, to: 0.3, step: 0.1 })).toBe(3);
  });

  it('is the product of its axes', () => {
    expect(sizeOf([[1, 2, 3], { from: 2, to: 3, step: 1 }])).toBe(6);
  });
});

describe('looksLikeSeveral', () => {
  it('is never sure about text', () => {
    expect(looksLikeSeveral('string', 'a, b')).toBe(false);
    expect(looksLikeSeveral('number', '1, 2')).toBe(true);
    expect(looksLikeSeveral('integer', '1..3')).toBe(true);
    expect(looksLikeSeveral('number', '1.5')).toBe(false);
  });
});

describe('the ranges of the command line', () => {
  const axis = (text: string, mode: 'grid' | 'random' = 'grid') =>
    parseAxis('number', text, mode, trans);

  it('mean the same in the form', () => {
    expect(axis('1:9:2')).toEqual(axis('1..9 step 2'));
    expect(axis('0.001:1:log', 'random')).toEqual(
      axis('0.001..1 log', 'random')
    );
    expect(parseAxis('integer', '1:3', 'grid', trans)).toEqual({
      value: { from: 1, to: 3, step: 1 }
    });
    expect(looksLikeSeveral('number', '0:1:0.1')).toBe(true);
    expect(looksLikeSeveral('string', '0:1:0.1')).toBe(false);
  });
});

describe('an axis as it is typed', () => {
  it.each([
    [[1, 2.5]],
    [['a', 'b']],
    [['a, b', 'c']],
    [['1', '2']],
    [['1..3']],
    [['', 'true', 'x y']],
    [[[1], { a: 2 }, null]],
    [[true, false]],
    [{ from: 1, to: 9, step: 2 }]
  ])('%j is read as it was', axis => {
    const read = parseAxis(null, axisText(axis), 'grid', trans);
    expect(read).toEqual({ value: axis });
  });

  it('keeps what is drawn at random', () => {
    const axis = { min: 0.001, max: 1, log: true, type: 'number' as const };
    const read = parseAxis('number', axisText(axis), 'random', trans);
    expect(read).toEqual({ value: axis });
  });
});
