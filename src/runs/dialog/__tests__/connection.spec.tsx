import { nullTranslator } from '@jupyterlab/translation';
import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import type { IConnectionTest } from '../../../api';
import { ConvectError } from '../../../api';
import { TranslationProvider } from '../../../ui';
import { Connection } from '../connection';
import type { RunForm } from '../form';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

async function pressed(
  testConnection: () => Promise<IConnectionTest>
): Promise<string[]> {
  const place = document.createElement('div');
  const form = { testConnection } as RunForm;
  await act(async () =>
    createRoot(place).render(
      <TranslationProvider value={nullTranslator.load('')}>
        <Connection form={form} />
      </TranslationProvider>
    )
  );
  await act(async () => place.querySelector('button')?.click());
  return [...place.querySelectorAll('li')].map(item => item.textContent ?? '');
}

describe('the test of a connection', () => {
  it('names each step up to the one that fails, and what to do', async () => {
    const lines = await pressed(async () => ({
      ok: false,
      steps: [
        {
          step: 'address',
          ok: true,
          message: 'A server answers.',
          hint: null
        },
        {
          step: 'sign-in',
          ok: false,
          message: 'kubeflow asks to sign in.',
          hint: 'Use a token.'
        }
      ]
    }));
    expect(lines).toEqual([
      '✓ Address A server answers.',
      '✗ Sign-in kubeflow asks to sign in. Use a token.'
    ]);
  });

  it('says why the server of JupyterLab cannot be asked', async () => {
    const lines = await pressed(() =>
      Promise.reject(new ConvectError('It is away.', 503, 'away'))
    );
    expect(lines).toEqual(['It is away.']);
  });
});
