import { nullTranslator } from '@jupyterlab/translation';

import type { IOverview } from '../../../api';
import { freeOf } from '../free';

const trans = nullTranslator.load('jupyterlab_convect');
const GIBI = 2 ** 30;

const node = (
  name: string,
  cpu: number | null,
  memory: number,
  ready = true
) => ({
  name,
  ready,
  type: null,
  closed: null,
  resources: [
    { name: 'cpu', total: 32, free: cpu, used: null },
    { name: 'memory', total: 64 * GIBI, free: memory, used: null }
  ]
});

const overview: IOverview = {
  namespace: 'team',
  quotas: null,
  queues: null,
  holders: [],
  nodes: [
    node('a', 3.25, 10 * GIBI),
    node('b', 7.96, 2.55 * GIBI),
    node('gone', 30, 60 * GIBI, false)
  ],
  gpus: [
    {
      resource: 'nvidia.com/gpu',
      type: 'NVIDIA-A100',
      total: 8,
      free: 3,
      largest_free: 2,
      largest_node: 'a',
      sharing: null,
      use: null
    },
    {
      resource: 'nvidia.com/gpu',
      type: 'NVIDIA-T4',
      total: 4,
      free: null,
      largest_free: null,
      largest_node: 'b',
      sharing: null,
      use: null
    }
  ],
  offers: [],
  hidden: [],
  notes: [],
  reading: false
};

describe('what is free', () => {
  it('is the most that one ready node has, never more', () => {
    const { cpu, memory } = freeOf(overview, '', trans);
    expect(cpu).toBe('Free on one node: up to 7.9');
    expect(memory).toBe('Free on one node: up to 10Gi');
  });

  it('tells GPUs by type, and offers the types', () => {
    const { gpu, gpuTypes } = freeOf(overview, '', trans);
    expect(gpu).toBe(
      'NVIDIA-A100: 3 of 8 free, up to 2 on one node · NVIDIA-T4: 4 in all'
    );
    expect(gpuTypes).toEqual(['NVIDIA-A100', 'NVIDIA-T4']);
    expect(freeOf(overview, 'NVIDIA-T4', trans).gpu).toBe(
      'NVIDIA-T4: 4 in all'
    );
    expect(freeOf(overview, 'H100', trans).gpu).toBe('There are none.');
  });

  it('says nothing about what may not be seen', () => {
    const unseen = { ...overview, nodes: null, gpus: null };
    expect(freeOf(unseen, '', trans)).toEqual({
      cpu: null,
      memory: null,
      gpu: null,
      gpuTypes: []
    });
  });
});
