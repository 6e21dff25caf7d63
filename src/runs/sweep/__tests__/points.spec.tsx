import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import type { SweepModel } from '../model';
import { AddPoints } from '../points';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

async function shown(changed: string[]): Promise<string> {
  const model = {
    view: { space: { lr: [0.1] }, changed },
    points: []
  } as unknown as SweepModel;
  const place = document.createElement('div');
  const root = createRoot(place);
  await act(async () =>
    root.render(<AddPoints model={model} onDone={() => undefined} />)
  );
  const text = place.textContent ?? '';
  act(() => root.unmount());
  return text;
}

describe('adding points to a sweep', () => {
  it('says which files are others than those that the points run', async () => {
    expect(await shown(['train.ipynb'])).toContain(
      'Changed since this sweep was submitted: train.ipynb. Points that you add run the version of then'
    );
    expect(await shown(['a', 'b', 'c', 'd'])).toContain('a, b, c, ….');
  });

  it('says nothing when they are the same', async () => {
    expect(await shown([])).not.toContain('Changed');
  });
});
