import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import type { IHolder, INodeOverview, IWaitRange } from '../api';
import { formatDuration, formatNumber } from '../ui/format';
import { isObject } from '../ui/json';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const BYTES = new Set(['memory', 'ephemeral-storage', 'storage', 'gpu-memory']);
/** Minutes without use from which on it is worth a word. */
const IDLE_MINUTES = 1;

/** The resource itself: quotas speak of `requests.cpu` and `limits.memory`. */
export function plainResource(name: string): string {
  return name.replace(/^(requests|limits)\./, '');
}

/** An amount of a resource, as people read it: `1.5 GiB`, `0.5`. */
export function amountText(name: string, value: number): string {
  if (!BYTES.has(plainResource(name))) {
    return formatNumber(Math.round(value * 100) / 100);
  }
  let size = value;
  let unit = 0;
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${formatNumber(Math.round(size * 10) / 10)} ${UNITS[unit]}`;
}

/** What a resource is called. */
export function resourceLabel(name: string, trans: TranslationBundle): string {
  switch (plainResource(name)) {
    case 'cpu':
      return trans.__('CPU');
    case 'memory':
      return trans.__('Memory');
    case 'gpu':
    case 'nvidia.com/gpu':
      return trans.__('GPU');
    case 'gpu-memory':
      return trans.__('GPU memory');
    case 'pods':
    case 'count/pods':
      return trans.__('Pods');
    case 'count/jobs.batch':
      return trans.__('Jobs');
    default:
      return plainResource(name);
  }
}

export function kindLabel(
  kind: IHolder['kind'],
  trans: TranslationBundle
): string {
  switch (kind) {
    case 'run':
      return trans.__('Run');
    case 'service':
      return trans.__('Service');
    case 'kernel':
      return trans.__('Kernel');
    case 'server':
      return trans.__('Notebook server');
    case 'dask':
      return trans.__('Dask cluster');
    case 'training':
      return trans.__('Training');
    case 'pipeline':
      return trans.__('Pipeline');
    case 'other':
      return trans.__('Other');
  }
}

/** How long nobody has used it; null when that is not worth a word. */
export function idleText(
  seconds: number | null,
  trans: TranslationBundle
): string | null {
  const minutes = Math.floor((seconds ?? 0) / 60);
  return minutes < IDLE_MINUTES
    ? null
    : trans._n('idle for %1 minute', 'idle for %1 minutes', minutes);
}

/** `about 2 min 00 s to 5 min 00 s`; null without an estimate. */
export function waitText(
  wait: IWaitRange | null,
  trans: TranslationBundle
): string | null {
  return wait
    ? trans.__(
        'about %1 to %2',
        formatDuration(wait.shortest),
        formatDuration(wait.longest)
      )
    : null;
}

/** What a request asks for: `CPU 4 · memory 16Gi · GPU 1 A100`. */
export function requestText(
  settings: JSONObject,
  trans: TranslationBundle
): string {
  const resources = isObject(settings.resources) ? settings.resources : {};
  const { cpu, memory, gpu } = resources;
  const count = isObject(gpu) ? gpu.count : gpu;
  const type = isObject(gpu) && gpu.type ? ` ${String(gpu.type)}` : '';
  return [
    cpu !== undefined && trans.__('CPU %1', String(cpu)),
    memory !== undefined && trans.__('memory %1', String(memory)),
    count !== undefined && trans.__('GPU %1', String(count)) + type
  ]
    .filter(Boolean)
    .join(' · ');
}

/** What is offered where an administrator has configured no profiles. */
export function offerTitle(title: string, trans: TranslationBundle): string {
  switch (title) {
    case 'All that is free':
      return trans.__('All that is free');
    case 'CPU only':
      return trans.__('CPU only');
    default:
      return title;
  }
}

/** Those whose name, type or resources contain all words. */
export function matching(
  nodes: readonly INodeOverview[],
  text: string
): INodeOverview[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return nodes.filter(node => {
    const named = [
      node.name,
      node.type ?? '',
      ...node.resources.map(({ name }) => name)
    ];
    const whole = named.join(' ').toLowerCase();
    return words.every(word => whole.includes(word));
  });
}

/** The sum of a resource over all nodes; free is null when that of one is not known. */
export function summed(
  nodes: readonly INodeOverview[]
): { name: string; total: number; free: number | null; used: number | null }[] {
  const found = new Map<
    string,
    { total: number; free: number | null; used: number | null }
  >();
  for (const { resources, ready } of nodes) {
    for (const { name, total, free, used } of resources) {
      const known = found.get(name) ?? { total: 0, free: 0, used: 0 };
      // What is free on a node where nothing starts is of no use to anybody.
      const usable = ready ? free : free === null ? null : 0;
      found.set(name, {
        total: known.total + total,
        free:
          known.free === null || usable === null ? null : known.free + usable,
        used: known.used === null || used === null ? null : known.used + used
      });
    }
  }
  return [...found].map(([name, amounts]) => ({ name, ...amounts }));
}
