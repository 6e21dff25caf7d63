import { nullTranslator } from '@jupyterlab/translation';
import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import type { IConvectApi } from '../../../api';
import { changedEntry } from '../../../settings/sweepchoice';
import { useModel } from '../../../ui';
import { RunForm } from '../form';
import { Parameters } from '../parameters';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

function Form({ form }: { form: RunForm }): JSX.Element {
  return <Parameters form={useModel(form)} />;
}

describe('the field of a parameter', () => {
  it('stays the same while one value becomes several, so that typing goes on', async () => {
    const api = {
      runtimes: async () => ({ runtimes: [] }),
      about: async () => ({ default_runtime: 'local' }),
      profiles: async () => ({ profiles: [], images: [], registries: [] }),
      discover: async () => ({
        kind: 'script',
        kernel: null,
        parameters: [
          { name: 'n', type: 'integer', default: 1, choices: [], source: '1' }
        ]
      })
    } as unknown as IConvectApi;
    const trans = nullTranslator.load('');
    const subject = { path: 'a.py', document: null, title: 'a.py' };
    const form = new RunForm(api, subject, trans, { choice: null });
    await form.ready;
    const place = document.createElement('div');
    const root = createRoot(place);
    await act(async () => root.render(<Form form={form} />));
    const before = place.querySelector('input');
    const [n] = form.parameters;
    act(() => form.setEntry(n, changedEntry(form.entries, n, { text: '1,' })));
    expect(form.entries.n.several).toBe(true);
    expect(place.querySelector('input')).toBe(before);
    expect(before?.value).toBe('1,');
    act(() => root.unmount());
    form.dispose();
  });
});
