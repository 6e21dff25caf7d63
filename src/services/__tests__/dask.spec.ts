import { nullTranslator } from '@jupyterlab/translation';

import type { IDaskCluster, IDaskOption } from '../../api';
import { MOST_SAMPLES, sampled } from '../daskcurves';
import { readOption, textOf } from '../daskform';
import { clientCell, clientCode } from '../daskkernel';

const trans = nullTranslator.load('jupyterlab_convect');

function option(
  type: IDaskOption['spec']['type'],
  more: Partial<IDaskOption['spec']> = {},
  usual: unknown = null
): IDaskOption {
  const spec = { type, ...more };
  return { field: 'x', label: 'X', default: usual, spec } as IDaskOption;
}

describe('options of a Dask gateway', () => {
  it('are read by their type', () => {
    const read = (each: IDaskOption, text: string) =>
      readOption(each, text, trans);
    expect(read(option('int', { min: 1, max: 4 }), '4').value).toBe(4);
    expect(read(option('int', { min: 1, max: 4 }), '5').complaint).toBe(
      'Enter 4 or less.'
    );
    expect(read(option('int', { min: 1 }), '0').complaint).toBe(
      'Enter 1 or more.'
    );
    expect(read(option('int'), '1.5').complaint).toBe('Enter a whole number.');
    expect(read(option('float'), 'much').complaint).toBe('Enter a number.');
    expect(read(option('float'), '0.5').value).toBe(0.5);
    expect(read(option('float'), ' ')).toEqual({});
    expect(read(option('bool'), 'true').value).toBe(true);
    expect(read(option('string'), 'a b').value).toBe('a b');
    expect(read(option('select', { options: ['a'] }), 'a').value).toBe('a');
    expect(read(option('mapping'), 'A=1\n\n B = x=y ').value).toEqual({
      A: '1',
      B: 'x=y'
    });
    expect(read(option('mapping'), 'A').complaint).toBe(
      'Write NAME=value, one on each line.'
    );
  });

  it('show their defaults as they are typed', () => {
    expect(textOf(option('int', {}, 2))).toBe('2');
    expect(textOf(option('bool', {}, false))).toBe('false');
    expect(textOf(option('string', {}, 'x'))).toBe('x');
    expect(textOf(option('mapping', {}, { A: '1' }))).toBe('A=1');
    expect(textOf(option('float'))).toBe('');
  });
});

it('connects a notebook without telling the name of the cluster', () => {
  expect(clientCode('abc')).toContain('.startswith("abc")');
  const carried = clientCell('abc');
  const [cell] = carried.getData('application/vnd.jupyter.cells') as {
    source: string;
  }[];
  expect(cell.source).toBe(clientCode('abc'));
  expect(carried.getData('text/plain')).toBe(clientCode('abc'));
});

it('keeps what was seen of clusters that are there, up to a limit', () => {
  const cluster = {
    id: 'a',
    is_known: true,
    workers: 2,
    cpu: 150,
    memory: 7,
    processing: 1,
    waiting: 3
  } as IDaskCluster;
  let seen = sampled(new Map(), [cluster], 0);
  expect(seen.get('a')).toEqual([
    { time: 0, workers: 2, cpu: 1.5, memory: 7, processing: 1, waiting: 3 }
  ]);
  for (let time = 1; time < 1000; time++) {
    seen = sampled(seen, [{ ...cluster, cpu: null }], time);
  }
  const kept = seen.get('a') ?? [];
  expect(kept.length).toBe(MOST_SAMPLES);
  expect(kept[kept.length - 1]).toMatchObject({ time: 999, cpu: null });
  expect(
    sampled(seen, [{ ...cluster, is_known: false }], 1000).get('a')
  ).toEqual(kept);
  expect(sampled(seen, [], 1001).size).toBe(0);
});
