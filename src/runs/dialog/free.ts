import type { TranslationBundle } from '@jupyterlab/translation';

import type { IOverview } from '../../api';
import { formatNumber } from '../../ui/format';

/** What of a cluster is free now, in words for the fields that ask for it. */
export interface IFree {
  cpu: string | null;
  memory: string | null;
  gpu: string | null;
  gpuTypes: string[];
}

const GIBI = 1 << 30;

/** `type` is the type of GPU that is chosen, empty for any. A step has to fit on one node. */
export function freeOf(
  overview: IOverview,
  type: string,
  trans: TranslationBundle
): IFree {
  const cpu = mostOnOneNode(overview, 'cpu');
  const memory = mostOnOneNode(overview, 'memory');
  const gpus = overview.gpus ?? [];
  const types = gpus.map(gpu => gpu.type).filter(name => name !== null);
  const shown = gpus.filter(gpu => !type || gpu.type === type);
  return {
    cpu:
      cpu === null
        ? null
        : trans.__('Free on one node: up to %1', formatNumber(floor(cpu))),
    memory:
      memory === null
        ? null
        : trans.__(
            'Free on one node: up to %1',
            `${formatNumber(floor(memory / GIBI))}Gi`
          ),
    gpu:
      overview.gpus === null
        ? null
        : shown.length === 0
          ? trans.__('There are none.')
          : shown.map(gpu => sentenceOf(gpu, trans)).join(' · '),
    gpuTypes: [...new Set(types)]
  };
}

function sentenceOf(
  gpu: NonNullable<IOverview['gpus']>[number],
  trans: TranslationBundle
): string {
  const name = gpu.type ?? gpu.resource;
  if (gpu.free === null) {
    return trans.__('%1: %2 in all', name, gpu.total);
  }
  return trans.__(
    '%1: %2 of %3 free, up to %4 on one node',
    name,
    gpu.free,
    gpu.total,
    gpu.largest_free ?? 0
  );
}

function mostOnOneNode(overview: IOverview, resource: string): number | null {
  const free = (overview.nodes ?? [])
    .filter(({ ready }) => ready)
    .flatMap(({ resources }) => resources)
    .filter(({ name }) => name === resource)
    .map(amount => amount.free)
    .filter(amount => amount !== null);
  return free.length > 0 ? Math.max(...free) : null;
}

function floor(amount: number): number {
  return Math.floor(amount * 10) / 10;
}
