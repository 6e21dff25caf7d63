import { nullTranslator } from '@jupyterlab/translation';

import type { IMetrics, IParameter, IRuntime } from '../../../api';
import type { IChoice } from '../choice';
import { choiceOf, EMPTY_CHOICE, outcomeOf } from '../choice';
import { documentOf, pipelineOf } from '../document';

const trans = nullTranslator.load('');
const subject = { path: 'a/train.ipynb', document: null, title: 'train' };

const parameter = (change: Partial<IParameter>): IParameter => ({
  name: 'lr',
  type: 'number',
  default: 0.1,
  source: '0.1',
  help: null,
  choices: [],
  required: false,
  ...change
});

const runtime = (features: IRuntime['features']): IRuntime => ({
  name: 'local',
  display_name: 'This machine',
  features,
  options_schema: {},
  problem: null
});

function outcome(
  change: Partial<IChoice>,
  features: IRuntime['features'] = [],
  parameters = [parameter({})]
) {
  const choice = { ...EMPTY_CHOICE, ...change };
  return outcomeOf(subject, choice, parameters, runtime(features), trans);
}

describe('outcomeOf', () => {
  it('asks for nothing but the file when nothing is chosen', () => {
    expect(outcome({})).toEqual({
      request: { path: 'a/train.ipynb', runtime: 'local' },
      sweep: null,
      size: 1,
      errors: {}
    });
  });

  it('makes a sweep of several values and counts its runs', () => {
    const { sweep, size } = outcome({
      parameters: { lr: { text: '0.1, 0.2', several: true } },
      goal: 'max',
      metric: 'accuracy'
    });
    expect(size).toBe(2);
    expect(sweep).toMatchObject({
      space: { lr: [0.1, 0.2] },
      mode: 'grid',
      select: 'max:accuracy'
    });
  });

  it('leaves the best to the server, or asks for it only with a metric that can be', () => {
    const swept = { parameters: { lr: { text: '0.1, 0.2', several: true } } };
    const metrics = { names: ['loss'], complete: true, best: 'min:loss' };
    const select = (change: Partial<IChoice>, known: IMetrics | null) => {
      const { sweep, errors } = outcomeOf(
        subject,
        { ...EMPTY_CHOICE, ...swept, ...change },
        [parameter({})],
        runtime([]),
        trans,
        known
      );
      return [sweep?.select, errors.metric];
    };
    expect(select({}, metrics)).toEqual([undefined, undefined]);
    expect(select({ goal: 'none' }, metrics)).toEqual(['none', undefined]);
    expect(select({ goal: 'max', metric: ' ' }, null)[1]).toBe(
      'Name the metric.'
    );
    expect(select({ goal: 'min', metric: 'los' }, metrics)[1]).toBe(
      'It reports no los, but loss.'
    );
    const open = { ...metrics, complete: false };
    expect(select({ goal: 'min', metric: 'los' }, open)).toEqual([
      'min:los',
      undefined
    ]);
  });

  it('names the field that is wrong', () => {
    const { errors } = outcome({
      parameters: { lr: { text: 'fast', several: false } },
      env: 'no equals sign',
      retries: '-1'
    });
    expect(Object.keys(errors).sort()).toEqual([
      'env',
      'parameter lr',
      'retries'
    ]);
  });

  it('insists on what has no default', () => {
    const { errors } = outcome(
      {},
      [],
      [parameter({ default: null, source: null, required: true })]
    );
    expect(errors).toHaveProperty(['parameter lr']);
  });

  it('asks only for what the runtime has', () => {
    const asked = { image: 'i', cpu: '2', gpu: '1', secrets: 'T=s/k' };
    expect(outcome(asked).request.settings).toBeUndefined();
    expect(outcome(asked, ['cpu', 'gpu', 'secrets']).request.settings).toEqual({
      resources: { cpu: '2', gpu: 1 },
      secrets: [{ env: 'T', name: 's', key: 'k' }]
    });
  });

  it('asks for the same again when a run is cloned', () => {
    const asked = outcome(
      {
        name: 'again',
        parameters: { lr: { text: '0.5', several: false } },
        cpu: '500m',
        gpu: '2',
        gpuType: 'A100',
        env: 'A=1\nB=x=y',
        dependencies: 'data/*.csv',
        retries: '2',
        timeout: '1h'
      },
      ['cpu', 'gpu']
    ).request;
    const choice = choiceOf(asked);
    const again = outcome(choice, ['cpu', 'gpu']).request;
    expect(again).toEqual(asked);
  });
});

describe('a pipeline made from the form', () => {
  it('lets each run choose the parameters', () => {
    const asked = outcome({
      parameters: { lr: { text: '0.5', several: false } }
    });
    expect(documentOf(subject, asked, [parameter({ help: 'rate' })])).toEqual({
      convect: 1,
      name: 'train',
      parameters: { lr: { type: 'number', default: 0.5, description: 'rate' } },
      nodes: {
        train: {
          kind: 'notebook',
          path: 'train.ipynb',
          parameters: { lr: '${{ parameters.lr }}' }
        }
      },
      layout: { train: [0, 0] }
    });
  });

  it('gives files of one name different ids', () => {
    const { nodes } = pipelineOf('two', ['a/x.ipynb', 'b/x.py', '数据.ipynb']);
    expect(nodes).toEqual({
      x: { kind: 'notebook', path: 'a/x.ipynb' },
      'x-2': { kind: 'script', path: 'b/x.py' },
      数据: { kind: 'notebook', path: '数据.ipynb' }
    });
  });
});
