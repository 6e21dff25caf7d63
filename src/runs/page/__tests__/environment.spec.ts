import { kindOf } from '../environment';

describe('a difference to the commit', () => {
  it('tells what was added and removed from where it was', () => {
    expect(
      [
        'diff --git a/x.py b/x.py',
        'index 1..2 100644',
        '--- a/x.py',
        '+++ b/x.py',
        '@@ -1,2 +1,2 @@ def f():',
        '-old',
        '+new',
        ' same',
        ''
      ].map(kindOf)
    ).toEqual([
      ...Array<string>(5).fill('jp-mod-place'),
      'jp-mod-removed',
      'jp-mod-added',
      '',
      ''
    ]);
  });
});
