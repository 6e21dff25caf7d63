import { nullTranslator } from '@jupyterlab/translation';

import type { IMetrics, IParameter } from '../../../api';
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

function outcome(change: Partial<IChoice>, parameters = [parameter({})]) {
  const choice = { ...EMPTY_CHOICE, runtime: 'local', ...change };
  return outcomeOf(subject, choice, parameters, trans);
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
      samples: '-1'
    });
    expect(Object.keys(errors)).toEqual(['parameter lr']);
  });

  it('insists on what has no default', () => {
    const { errors } = outcome({}, [
      parameter({ default: null, source: null, required: true })
    ]);
    expect(errors).toHaveProperty(['parameter lr']);
  });

  it('asks for everything again when a run is cloned', () => {
    const request = {
      path: 'a/train.ipynb',
      runtime: 'kubernetes',
      name: 'again',
      parameters: { lr: 0.5 },
      labels: { team: 'churn' },
      use_cache: false,
      options: { queue: 'gpu' },
      settings: {
        image: 'registry/ds:1',
        pull_policy: 'Always',
        kernel: 'python3',
        env: { A: '1', B: 'x=y' },
        secrets: [{ env: 'T', name: 's', key: 'k' }],
        resources: {
          cpu: '500m',
          memory: { request: '1Gi', limit: '2Gi' },
          gpu: { count: 2, type: 'A100' },
          shared_memory: '1Gi',
          ephemeral_storage: '5Gi'
        },
        volumes: [{ claim: 'data', path: '/data' }],
        dependencies: ['data/*.csv'],
        outputs: ['out/*'],
        metrics: { loss: 'loss=(.*)' },
        retries: { count: 2, delay: 5 },
        timeout: '1h',
        cache: true,
        working_folder: 'isolated',
        kubernetes: { node_selector: { zone: 'a' } }
      }
    };
    expect(outcome(choiceOf(request)).request).toEqual(request);
  });

  it('names the part that is run, and the run whose results it takes', () => {
    const part = { mode: 'from', node: 'b' } as const;
    const { request } = outcomeOf(
      { ...subject, select: part, of: 'r1' },
      EMPTY_CHOICE,
      [],
      trans
    );
    expect(request).toMatchObject({ select: part, of: 'r1' });
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

  it('keeps what the pipeline says of its nodes', () => {
    const document = {
      convect: 1,
      defaults: { env: { A: '1' }, outputs: ['a'], timeout: '1h' },
      nodes: {}
    };
    const asked = outcome({
      settings: { env: { B: '2' }, outputs: ['a', 'b'], timeout: '2h' }
    });
    expect(documentOf({ ...subject, document }, asked, []).defaults).toEqual({
      env: { A: '1', B: '2' },
      outputs: ['a', 'b'],
      timeout: '2h'
    });
  });
});

describe('several files', () => {
  const files = [
    { path: 'a/x.ipynb', parameters: [parameter({})] },
    { path: 'b/x.py', parameters: [parameter({}), parameter({ name: 'n' })] },
    { path: '数据.ipynb', parameters: [parameter({ name: 'n', default: 9 })] }
  ];

  it('run one after the other, or side by side, under ids of their own', () => {
    const chain = pipelineOf(files, true).nodes;
    expect(chain).toMatchObject({
      x: { kind: 'notebook', path: 'a/x.ipynb' },
      'x-2': { kind: 'script', path: 'b/x.py', after: ['x'] },
      数据: { kind: 'notebook', path: '数据.ipynb', after: ['x-2'] }
    });
    const { nodes } = pipelineOf(files, false);
    expect(JSON.stringify(nodes)).not.toContain('after');
    expect(pipelineOf(files, true).name).toBe('x, x, 数据');
  });

  it('share a parameter of one name and default, and no other', () => {
    const { parameters, nodes } = pipelineOf(files, true);
    expect(Object.keys(parameters as object)).toEqual([
      'lr',
      'x-2_n',
      '数据_n'
    ]);
    expect(nodes).toMatchObject({
      'x-2': {
        parameters: {
          lr: '${{ parameters.lr }}',
          n: '${{ parameters.x-2_n }}'
        }
      }
    });
  });
});
