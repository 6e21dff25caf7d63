import { labelsOf, labelsText } from '../editing';

describe('labels as text', () => {
  it('are the same after being written and read', () => {
    const labels = { team: 'churn', baseline: '', 'a b': 'c = d' };
    expect(labelsText(labels)).toBe('team=churn\nbaseline\na b=c = d');
    expect(labelsOf(labelsText(labels))).toEqual(labels);
  });

  it('lose nothing but blanks and empty lines', () => {
    expect(labelsOf('  x = 1 \n\n=no key\n y')).toEqual({ x: '1', y: '' });
  });
});
