import { nullTranslator } from '@jupyterlab/translation';
import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import type { IConvectApi } from '../../../api';
import { choiceOf } from '../choice';
import { RunForm } from '../form';
import { RunFormView } from '../view';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

describe('the form of a run that is asked for again', () => {
  it('shows all that the run was asked, also what the runtime cannot do', async () => {
    const api = {
      runtimes: async () => ({
        runtimes: [
          {
            name: 'local',
            display_name: '',
            features: ['cpu', 'memory'],
            options_schema: {},
            problem: null
          }
        ]
      }),
      about: async () => ({ default_runtime: 'local' }),
      profiles: async () => ({ profiles: [], images: [], registries: [] }),
      discover: async () => ({
        kind: 'notebook',
        kernel: 'python3',
        parameters: []
      }),
      check: async () => ({ problems: [], metrics: null })
    } as unknown as IConvectApi;
    const trans = nullTranslator.load('');
    const subject = { path: 'a.ipynb', document: null, title: 'a.ipynb' };
    const choice = choiceOf({
      labels: { team: 'churn' },
      settings: {
        volumes: [{ claim: 'data', path: '/data' }],
        metrics: { loss: 'loss=(.*)' },
        resources: { memory: { request: '1Mi', limit: '2Gi' } }
      }
    });
    const form = new RunForm(api, subject, trans, { choice });
    await form.ready;
    const place = document.createElement('div');
    const root = createRoot(place);
    await act(async () => root.render(<RunFormView form={form} />));
    const values = [...place.querySelectorAll('input')].map(
      ({ value }) => value
    );
    for (const value of ['churn', 'data', '/data', 'loss=(.*)', '1Mi', '2Gi']) {
      expect(values).toContain(value);
    }
    const labels = [...place.querySelectorAll('.jp-Convect-label')].map(
      ({ textContent }) => textContent
    );
    expect(labels).toContain('CPU');
    expect(labels).not.toContain('GPU');
    act(() => root.unmount());
    form.dispose();
  });
});
