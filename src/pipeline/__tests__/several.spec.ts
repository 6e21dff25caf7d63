import { areSame, changed, common } from '../several';

describe('several values', () => {
  it('have in common what all of them say', () => {
    expect(common(['a', 'a'])).toBe('a');
    expect(common(['a', 'b'])).toBeUndefined();
    expect(common(['a', undefined])).toBeUndefined();
    expect(
      common([
        ['a', 'b'],
        ['b', 'c']
      ])
    ).toEqual(['b']);
    expect(
      common([
        { cpu: '1', memory: '1Gi', gpu: { count: 1 } },
        { cpu: '1', memory: '2Gi', gpu: { count: 1, type: 'A' } }
      ])
    ).toEqual({ cpu: '1', gpu: { count: 1 } });
    expect(areSame([{ a: [1] }, { a: [1] }])).toBe(true);
    expect(areSame([{ a: [1] }, undefined])).toBe(false);
  });

  it('change where the change says so, and keep what is their own', () => {
    expect(changed('a', undefined, 'b')).toBe('b');
    expect(changed({ A: '1', B: '2' }, { A: '1' }, { A: '1', C: '3' })).toEqual(
      {
        A: '1',
        B: '2',
        C: '3'
      }
    );
    expect(changed({ A: '1', B: '2' }, { A: '1' }, {})).toEqual({ B: '2' });
    expect(changed(['x', 'y'], ['y'], ['z'])).toEqual(['x', 'z']);
    expect(changed(undefined, undefined, { A: '1' })).toEqual({ A: '1' });
    expect(changed({ A: '1' }, undefined, undefined)).toBeUndefined();
    expect(changed('500m', undefined, { request: '1', limit: '2' })).toEqual({
      request: '1',
      limit: '2'
    });
  });
});
