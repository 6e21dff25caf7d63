import { URLExt } from '@jupyterlab/coreutils';

import type { IEndpoint } from '../api';
import type { IConvectApi } from '../tokens';
import { commandLine } from '../ui/shell';

/** Where an endpoint is called, and where people try it. */
export function addressOf(
  api: IConvectApi,
  { id }: Pick<IEndpoint, 'id'>
): string {
  const path = `jupyterlab-convect/api/v1/call/${encodeURIComponent(id)}`;
  const base = new URL(api.settings.baseUrl, location.href).href;
  return URLExt.join(base, path);
}

/** A command line that calls it. */
export function callOf(
  api: IConvectApi,
  endpoint: Pick<IEndpoint, 'id'>,
  token: string
): string {
  return commandLine([
    'curl',
    '-X',
    'POST',
    `${addressOf(api, endpoint)}?wait=30`,
    '-H',
    `Authorization: Bearer ${token}`,
    '-d',
    '{}'
  ]);
}
