import { nullTranslator } from '@jupyterlab/translation';

import type { INodeOverview, IOverview } from '../../api';
import { statusText } from '../status';
import {
  amountText,
  idleText,
  matching,
  requestText,
  resourceLabel,
  summed,
  waitText
} from '../words';

const trans = nullTranslator.load('jupyterlab_convect');
const GIBI = 2 ** 30;

function node(
  name: string,
  cpu: number | null,
  ready = true,
  type: string | null = null
): INodeOverview {
  return {
    name,
    ready,
    type,
    closed: null,
    resources: [
      { name: 'cpu', total: 8, free: cpu, used: 1 },
      { name: 'memory', total: 16 * GIBI, free: 4 * GIBI, used: null }
    ]
  };
}

describe('amounts', () => {
  it('are in the units of their resource', () => {
    expect(amountText('cpu', 1.256)).toBe('1.26');
    expect(amountText('memory', 1.5 * GIBI)).toBe('1.5 GiB');
    expect(amountText('requests.memory', 512 * 2 ** 20)).toBe('512 MiB');
    expect(amountText('nvidia.com/gpu', 4)).toBe('4');
  });

  it('have the names that people know', () => {
    expect(resourceLabel('requests.cpu', trans)).toBe('CPU');
    expect(resourceLabel('requests.nvidia.com/gpu', trans)).toBe('GPU');
    expect(resourceLabel('nvidia.com/mig-1g.5gb', trans)).toBe(
      'nvidia.com/mig-1g.5gb'
    );
  });

  it('of a request are those that it names', () => {
    const resources = {
      cpu: 4,
      memory: '16Gi',
      gpu: { count: 2, type: 'A100' }
    };
    expect(requestText({ resources }, trans)).toBe(
      'CPU 4 · memory 16Gi · GPU 2 A100'
    );
    expect(requestText({ resources: { gpu: 1 } }, trans)).toBe('GPU 1');
    expect(requestText({}, trans)).toBe('');
  });
});

describe('the sum of all nodes', () => {
  it('counts as free only where pods can start', () => {
    const [cpu] = summed([node('a', 2), node('b', 3), node('c', 8, false)]);
    expect(cpu).toEqual({ name: 'cpu', total: 24, free: 5, used: 3 });
  });

  it('is unknown where a part of it is', () => {
    const [cpu, memory] = summed([node('a', 2), node('b', null)]);
    expect(cpu.free).toBeNull();
    expect(memory.used).toBeNull();
    expect(memory.free).toBe(8 * GIBI);
  });
});

it('finds nodes by words of their name and type', () => {
  const nodes = [node('gpu-1', 1, true, 'NVIDIA-A100'), node('cpu-1', 1)];
  expect(matching(nodes, 'a100').map(({ name }) => name)).toEqual(['gpu-1']);
  expect(matching(nodes, '1 gpu a100')).toHaveLength(1);
  expect(matching(nodes, '')).toHaveLength(2);
});

it('says how long something is idle from a minute on', () => {
  expect(idleText(null, trans)).toBeNull();
  expect(idleText(59, trans)).toBeNull();
  expect(idleText(60, trans)).toBe('idle for 1 minute');
  expect(idleText(3600, trans)).toBe('idle for 60 minutes');
});

it('gives a wait as a range, or not at all', () => {
  expect(waitText(null, trans)).toBeNull();
  expect(waitText({ shortest: 30, longest: 90, samples: 5 }, trans)).toBe(
    'about 30 s to 1 min 30 s'
  );
});

it('has what is free in the status bar', () => {
  const overview = { nodes: [node('here', 1.5)] } as unknown as IOverview;
  expect(statusText(overview, trans)).toBe('CPU 1.5/8');
});
