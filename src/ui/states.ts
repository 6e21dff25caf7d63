import type { TranslationBundle } from '@jupyterlab/translation';

import type { State } from '../api';

export const LIVE: readonly State[] = [
  'waiting',
  'queued',
  'starting',
  'running'
];

export function isLive(state: State): boolean {
  return LIVE.includes(state);
}

/** Ended, but not as hoped for. */
export function isBad(state: State): boolean {
  return state === 'failed' || state === 'lost';
}

/** Whether a step or a process runs, and neither says nor does anything. */
export function hangs(state: State, reason?: string | null): boolean {
  return state === 'running' && !!reason?.startsWith('It seems to hang');
}

const RUNTIMES: Record<string, string> = {
  kfp: 'Kubeflow Pipelines',
  kubernetes: 'Kubernetes'
};

/** What a runtime is called. */
export function runtimeLabel(
  trans: TranslationBundle,
  name: string,
  displayName = RUNTIMES[name] ?? name
): string {
  return name === 'local' ? trans.__('This machine') : displayName;
}

export function stateLabel(trans: TranslationBundle, state: State): string {
  switch (state) {
    case 'waiting':
      return trans.__('Waiting');
    case 'queued':
      return trans.__('Queued');
    case 'starting':
      return trans.__('Starting');
    case 'running':
      return trans.__('Running');
    case 'succeeded':
      return trans.__('Succeeded');
    case 'failed':
      return trans.__('Failed');
    case 'cancelled':
      return trans.__('Stopped');
    case 'skipped':
      return trans.__('Skipped');
    case 'cached':
      return trans.__('Reused');
    case 'lost':
      return trans.__('Lost');
  }
}
