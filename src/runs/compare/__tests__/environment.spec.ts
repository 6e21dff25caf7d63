import { nullTranslator } from '@jupyterlab/translation';

import type { IRunEnvironment, IStepEnvironment } from '../../../api';
import { environmentLines } from '../environment';

const trans = nullTranslator.load('jupyterlab_convect');

/** A run whose steps were executed with these packages. */
function run(
  steps: Record<string, Record<string, string>>,
  facts: Partial<IStepEnvironment> = {}
): IRunEnvironment {
  const found: IRunEnvironment = { git: null, steps: {}, environments: {} };
  for (const [id, packages] of Object.entries(steps)) {
    const digest = JSON.stringify(packages);
    found.steps[id] = {
      digest,
      interpreter: '/p',
      kernel: 'python3',
      language: null,
      host: { name: 'm' },
      image: null,
      node: null,
      ...facts
    };
    found.environments[digest] = {
      python: '3.12.3',
      implementation: 'CPython',
      platform: 'linux-x86_64',
      packages
    };
  }
  return found;
}

const differing = (...runs: (IRunEnvironment | undefined)[]) =>
  environmentLines(runs, trans)
    .filter(({ differs }) => differs)
    .map(({ name, values }) => [name, ...values]);

describe('comparing environments', () => {
  it('names what was changed, added and removed', () => {
    expect(
      differing(
        run({ a: { pandas: '2.1.0', numpy: '2.0', old: '1' } }),
        run({ z: { pandas: '2.2.3', numpy: '2.0', more: '3' } })
      )
    ).toEqual([
      ['more', '', '3'],
      ['old', '1', ''],
      ['pandas', '2.1.0', '2.2.3']
    ]);
  });

  it('has all of it for those who want to see it', () => {
    const lines = environmentLines([run({ a: { x: '1' } })], trans);
    expect(lines).toEqual([
      { name: 'Host', values: ['m'], differs: false },
      { name: 'Python', values: ['CPython 3.12.3'], differs: false },
      { name: 'Platform', values: ['linux-x86_64'], differs: false },
      { name: 'x', values: ['1'], differs: false }
    ]);
  });

  it('does not call a run different that has no record', () => {
    const known = run({ a: { x: '1' } });
    const empty = run({});
    expect(differing(known, undefined, empty, known)).toEqual([]);
    expect(differing(known, undefined, run({ a: { x: '2' } }))).toEqual([
      ['x', '1', '', '2']
    ]);
    expect(environmentLines([undefined, empty], trans)).toEqual([]);
  });

  it('goes step by step where steps have different environments', () => {
    const one = run({ a: { x: '1' }, b: { x: '1' } });
    expect(differing(one, one)).toEqual([]);
    expect(differing(one, run({ a: { x: '1' }, b: { x: '2' } }))).toEqual([
      ['b: x', '1', '2']
    ]);
  });

  it('tells images and nodes apart', () => {
    const on = (image: string, node: string) => run({ a: {} }, { image, node });
    expect(differing(on('i@sha256:1', 'n1'), on('i@sha256:2', 'n1'))).toEqual([
      ['Digest of the image', 'i@sha256:1', 'i@sha256:2']
    ]);
  });
});
