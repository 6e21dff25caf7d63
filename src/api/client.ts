import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { IConvectApi } from '../tokens';
import { noteServerDate } from './clock';
import { ConvectError, isLoggedOut, loggedOut } from './error';
import { parseJson, stringifyJson } from './numbers';
import { OPERATIONS } from './schema';
import type { IMadeFile } from './types';

const ROOT = 'jupyterlab-convect/api/v1';

/** One attempt at one step of a run. */
export interface IAttemptKey {
  run: string;
  step: string;
  attempt: number;
}

type Name = keyof typeof OPERATIONS;

/** The client of the REST interface, with a method for each operation it describes. */
export function createApi(settings: ServerConnection.ISettings): IConvectApi {
  const url = (name: Name, ...given: unknown[]): string =>
    URLExt.join(settings.baseUrl, ROOT, addressOf(name, given).url);
  const ask = async (name: Name, given: unknown[]): Promise<unknown> => {
    const { kind, rest } = addressOf(name, given);
    const isRead = kind === 'GET' || kind === 'BLOB';
    const init: RequestInit = { method: isRead ? 'GET' : kind };
    if (!isRead && kind !== 'DELETE') {
      init.body = stringifyJson(rest ?? {});
    }
    const response = await fetched(url(name, ...given), init, settings);
    if (kind === 'BLOB') {
      return response.blob();
    }
    const text = await response.text();
    // What is in a notebook is the user's, whatever it looks like.
    const parse = name === 'notebook' ? JSON.parse : parseJson;
    return response.status === 204 ? undefined : parse(text);
  };
  const methods = Object.keys(OPERATIONS).map(name => [
    name,
    (...given: unknown[]) => ask(name as Name, given)
  ]);
  return { settings, url, ...Object.fromEntries(methods) } as IConvectApi;
}

/** The operation that serves a file of a run, as a list of them says where it is. */
export function fileOperation(
  run: string,
  { step, attempt, file }: Pick<IMadeFile, 'step' | 'attempt' | 'file'>
): ['file' | 'madeFile', IAttemptKey & { path: string }] {
  const [folder, ...parts] = (file ?? '').split('/');
  const name = folder === 'made' ? 'madeFile' : 'file';
  return [name, { run, step, attempt, path: parts.join('/') }];
}

/** How an operation is asked, its address, and what was given for its query or body. */
function addressOf(
  name: Name,
  given: unknown[]
): { kind: string; url: string; rest: unknown } {
  const [kind, template] = OPERATIONS[name].split(' ');
  const places = template.match(/\{\w+\}/g) ?? [];
  const [first, rest] = places.length > 0 ? given : [undefined, given[0]];
  const path = template.replace(/\{(\w+)\}/g, (_, place: string) => {
    const part = places.length > 1 ? (first as Values)[place] : first;
    const parts = place === 'path' ? String(part).split('/') : [String(part)];
    return parts.map(encodeURIComponent).join('/');
  });
  const query = kind === 'GET' ? queryOf((rest ?? {}) as Values) : '';
  return { kind, url: query ? `${path}?${query}` : path, rest };
}

type Values = Record<string, unknown>;

function queryOf(values: Values): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    for (const item of [value ?? []].flat()) {
      if (item !== '') {
        query.append(name, String(item));
      }
    }
  }
  return query.toString();
}

async function fetched(
  url: string,
  init: RequestInit,
  settings: ServerConnection.ISettings
): Promise<Response> {
  let response: Response;
  try {
    response = await ServerConnection.makeRequest(url, init, settings);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new ConvectError(message, 0, 'unreachable');
  }
  noteServerDate(response.headers.get('Date'));
  if (!response.ok) {
    throw await errorOf(response);
  }
  // Ours are never pages: it is where one logs in.
  if (response.headers.get('Content-Type')?.startsWith('text/html')) {
    throw loggedOut(response.status);
  }
  return response;
}

async function errorOf(response: Response): Promise<ConvectError> {
  const { status, statusText } = response;
  const body = await response.json().catch(() => null);
  // What we forbid has a code; what has none comes from who let us in before.
  if ((status === 401 || status === 403) && isLoggedOut(body?.code)) {
    return loggedOut(status);
  }
  return body
    ? new ConvectError(
        body.message || statusText,
        status,
        body.code ?? String(status),
        body.hint ?? null
      )
    : new ConvectError(statusText || `HTTP ${status}`, status, 'http');
}
