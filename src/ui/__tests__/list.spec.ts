import { pageOf, rowFor } from '../list';

describe('a page of a list', () => {
  it('is what is in sight, also at the top, where nothing is drawn above', () => {
    const top = { range: { startIndex: 0, endIndex: 7 } };
    expect(rowFor('PageDown', 2, pageOf(top), 10_000)).toBe(9);
    const bottom = { range: { startIndex: 9992, endIndex: 9999 } };
    expect(rowFor('PageUp', 9999, pageOf(bottom), 10_000)).toBe(9992);
    expect(rowFor('PageDown', 9998, pageOf(bottom), 10_000)).toBe(9999);
    expect(rowFor('PageDown', 0, pageOf({ range: null }), 10_000)).toBe(1);
  });
});
