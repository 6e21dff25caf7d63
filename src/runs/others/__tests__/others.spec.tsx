import { nullTranslator } from '@jupyterlab/translation';
import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import type { IOthersRun, IOthersRunView } from '../../../api';
import type { IConvectApi } from '../../../tokens';
import { TranslationProvider } from '../../../ui';
import { OthersView } from '../index';
import { OthersModel } from '../model';
import { planOf, statesOf } from '../plan';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

const RUN: IOthersRun = {
  id: 'r1',
  name: 'by hand',
  state: 'succeeded',
  reason: null,
  created: 1,
  ended: 3,
  pipeline: 'churn',
  made_by: 'kfp-2.14.3',
  convect_run: null
};
const UNIT = { group: null, after: [], when: null, loops: false };
const VIEW: IOthersRunView = {
  ...RUN,
  parameters: { lr: 0.5 },
  page: 'https://kubeflow/#/runs/details/r1',
  groups: [
    { ...UNIT, id: 'loop', name: 'loop', state: 'succeeded', loops: true }
  ],
  steps: [
    { ...UNIT, id: 'a', name: 'a', state: 'succeeded', image: 'ds:1' },
    {
      ...UNIT,
      id: 'loop/b',
      name: 'b',
      state: 'failed',
      group: 'loop',
      image: 'ds:2'
    }
  ]
};

function pageOf(runs: IOthersRun[], next: string | null = null) {
  return { runs, next };
}

async function shown(api: Partial<IConvectApi>) {
  const model = new OthersModel(
    { about: async () => ({ runtimes: [] }), ...api } as IConvectApi,
    'kfp'
  );
  const place = document.createElement('div');
  await act(async () => {
    createRoot(place).render(
      <TranslationProvider value={nullTranslator.load('')}>
        <OthersView model={model} planViews={null} />
      </TranslationProvider>
    );
    await model.more();
  });
  return { model, place };
}

describe('runs that were created elsewhere', () => {
  it('are listed, and one is shown with its steps and parameters', async () => {
    const { model, place } = await shown({
      othersRuns: async () => pageOf([RUN]),
      othersRun: async () => VIEW
    });
    expect(place.textContent).toContain('kfp-2.14.3');
    await act(async () => model.select('r1'));
    expect(place.querySelector('section')?.textContent).toContain('0.5');
    expect(place.querySelectorAll('.jp-Convect-othersSteps li')).toHaveLength(
      2
    );
    expect(place.querySelector('a')?.href).toBe(VIEW.page);
    model.dispose();
  });

  it('go on where the page before ended, each once', async () => {
    const asked: (string | undefined)[] = [];
    const { model, place } = await shown({
      othersRuns: async (_, query) => {
        asked.push(query?.after);
        return query?.after
          ? pageOf([RUN, { ...RUN, id: 'r2' }])
          : pageOf([RUN], 'more');
      }
    });
    await act(async () => model.more());
    expect(asked).toEqual(['', 'more']);
    expect(place.querySelectorAll('[data-others-run]')).toHaveLength(2);
    model.dispose();
  });

  it('have a plan that can be drawn, and a state for each part', () => {
    const { steps, groups } = planOf(VIEW);
    expect(steps.map(({ id, group }) => [id, group])).toEqual([
      ['a', undefined],
      ['loop/b', 'loop']
    ]);
    expect(groups?.[0].for_each).toBeTruthy();
    expect(statesOf(VIEW).steps['loop/b'].state).toBe('failed');
    expect(statesOf(VIEW).groups.loop.state).toBe('succeeded');
  });
});
