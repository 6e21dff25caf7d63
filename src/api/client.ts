import { URLExt } from '@jupyterlab/coreutils';
import type { INotebookContent } from '@jupyterlab/nbformat';
import { ServerConnection } from '@jupyterlab/services';
import type { JSONObject } from '@lumino/coreutils';

import { noteServerDate } from './clock';
import { ConvectError } from './error';
import { parseJson, stringifyJson } from './numbers';
import type {
  IAbout,
  IDiscovery,
  IEventChunk,
  ILogChunk,
  IMadeFile,
  IMadeFiles,
  IMetrics,
  IOverview,
  IProblem,
  IRequest,
  IRunEnvironment,
  IRunPage,
  IRunQuery,
  IRunView,
  IRuntime,
  ISelection,
  ISourceChange,
  ISweepPoints,
  ISweepRequest,
  ISweepSummary,
  ISweepView,
  Version
} from './types';

const ROOT = 'jupyterlab-convect/api/v1';

type Query = Record<
  string,
  string | number | boolean | readonly string[] | null | undefined
>;

/** One attempt at one step of a run. */
export interface IAttemptKey {
  run: string;
  step: string;
  attempt: number;
}

type FilePlace = Pick<IMadeFile, 'step' | 'attempt' | 'file'>;

/** What the runtime was asked for, and what it knew of it, in its own words. */
export interface IManifest {
  manifest: JSONObject | null;
  cluster: JSONObject | null;
}

/** The REST interface of the server extension, one method a verb. */
export class ConvectApi {
  constructor(readonly settings: ServerConnection.ISettings) {}

  about(): Promise<IAbout> {
    return this.get('about');
  }

  async runtimes(): Promise<IRuntime[]> {
    return (await this.get<{ runtimes: IRuntime[] }>('runtimes')).runtimes;
  }

  /** What there is in a cluster, and what of it is free. */
  top(runtime: string): Promise<IOverview> {
    return this.get(`runtimes/${encode(runtime)}/top`);
  }

  /** Would this run there? Says what does not fit, before it is asked to. */
  check(
    request: IRequest
  ): Promise<{ problems: IProblem[]; metrics: IMetrics }> {
    const path = `runtimes/${encode(request.runtime ?? 'local')}/check`;
    return this.post(path, request);
  }

  discover(path: string): Promise<IDiscovery> {
    return this.get('discover', { path });
  }

  async validate(
    what: { document: JSONObject } | { path: string },
    parameters?: JSONObject
  ): Promise<IProblem[]> {
    const body = { ...what, parameters };
    return (
      await this.post<{ problems: IProblem[] }>('pipelines/validate', body)
    ).problems;
  }

  describe<T>(what: { document: JSONObject } | { path: string }): Promise<T> {
    return this.post('pipelines/describe', what);
  }

  importPipeline<T>(path: string): Promise<T> {
    return this.post('pipelines/import', { path });
  }

  submit(request: IRequest): Promise<IRunView> {
    return this.post('runs', request);
  }

  listRuns(query: IRunQuery = {}): Promise<IRunPage> {
    return this.get('runs', { ...query });
  }

  run(id: string): Promise<IRunView> {
    return this.get(`runs/${encode(id)}`);
  }

  updateRun(
    id: string,
    change: { name?: string; labels?: Record<string, string>; note?: string }
  ): Promise<IRunView> {
    return this.send('PATCH', `runs/${encode(id)}`, change);
  }

  async deleteRun(id: string): Promise<void> {
    await this.send('DELETE', `runs/${encode(id)}`);
  }

  async stopRun(id: string, step?: string): Promise<void> {
    await this.post(`runs/${encode(id)}/stop`, step ? { step } : {});
  }

  rerun(
    id: string,
    selection: ISelection,
    version: Version = 'today'
  ): Promise<IRunView> {
    return this.post(`runs/${encode(id)}/rerun`, { ...selection, version });
  }

  /**
   * How the sources that a run executed differ from the files as they are now;
   * not where only outputs and metadata of a notebook do.
   */
  async changes(id: string): Promise<ISourceChange[]> {
    const path = `runs/${encode(id)}/changes`;
    const { changes } = await this.get<{ changes: ISourceChange[] }>(path);
    return changes.filter(({ before, after }) => before !== after);
  }

  /** The files that a run left, and what became of them. */
  made(id: string): Promise<IMadeFiles> {
    return this.get(`runs/${encode(id)}/made`);
  }

  /** Put them into the project, and with `replace` also where it changed since the submit. */
  putFiles(
    id: string,
    options: { replace?: boolean } = {}
  ): Promise<IMadeFiles> {
    return this.post(`runs/${encode(id)}/made`, options);
  }

  /** What a run was executed with. */
  environment(id: string): Promise<IRunEnvironment> {
    return this.get(`runs/${encode(id)}/environment`);
  }

  log(key: IAttemptKey, offset: number, limit?: number): Promise<ILogChunk> {
    return this.get(`${attemptPath(key)}/log`, { offset, limit });
  }

  /** The end of a log, of so many bytes. */
  logEnd(key: IAttemptKey, last: number): Promise<ILogChunk> {
    return this.get(`${attemptPath(key)}/log`, { last });
  }

  events(key: IAttemptKey, offset: number): Promise<IEventChunk> {
    return this.get(`${attemptPath(key)}/events`, { offset });
  }

  /** The executed notebook so far or, with `source`, the notebook as it was. */
  async notebook(
    key: IAttemptKey,
    options: { source?: boolean } = {}
  ): Promise<INotebookContent> {
    const query = options.source ? { source: 1 } : {};
    const url = this.url(`${attemptPath(key)}/notebook`, query);
    return (await this.fetch('GET', url)).json();
  }

  /** A script as it was when the attempt began. */
  async source(key: IAttemptKey): Promise<string> {
    return (await this.get<{ text: string }>(`${attemptPath(key)}/source`))
      .text;
  }

  /** What the runtime was asked for, in its own words. */
  manifest(key: IAttemptKey): Promise<IManifest> {
    return this.get<IManifest>(`${attemptPath(key)}/manifest`);
  }

  /** Addresses that the browser downloads from. */
  archiveUrl(run: string): string {
    return this.url(`runs/${encode(run)}/archive`);
  }

  logUrl(key: IAttemptKey): string {
    return this.url(`${attemptPath(key)}/log`, { download: 1 });
  }

  notebookUrl(key: IAttemptKey): string {
    return this.url(`${attemptPath(key)}/notebook`, { download: 1 });
  }

  fileUrl(run: string, { step, attempt, file }: FilePlace): string {
    const parts = (file ?? '').split('/').map(encode).join('/');
    return this.url(`${attemptPath({ run, step, attempt })}/${parts}`);
  }

  /** One file of a run, for showing it here. */
  async file(run: string, file: FilePlace): Promise<Blob> {
    return (await this.fetch('GET', this.fileUrl(run, file))).blob();
  }

  startSweep(request: ISweepRequest): Promise<ISweepView> {
    return this.post('sweeps', request);
  }

  async sweeps(): Promise<ISweepSummary[]> {
    const query = { limit: 1000 };
    return (await this.get<{ sweeps: ISweepSummary[] }>('sweeps', query))
      .sweeps;
  }

  sweep(id: string): Promise<ISweepView> {
    return this.get(`sweeps/${encode(id)}`);
  }

  /** Choose anew which run is the best: `max:accuracy`, or null for none. */
  markBest(id: string, select: string | null): Promise<ISweepView> {
    return this.send('PATCH', `sweeps/${encode(id)}`, { select });
  }

  async stopSweep(id: string): Promise<void> {
    await this.post(`sweeps/${encode(id)}/stop`, {});
  }

  rerunSweep(id: string): Promise<ISweepView> {
    return this.post(`sweeps/${encode(id)}/rerun`, {});
  }

  addPoints(id: string, points: ISweepPoints): Promise<ISweepView> {
    return this.post(`sweeps/${encode(id)}/points`, points);
  }

  /** For resources that have their client elsewhere. */
  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.json<T>('GET', this.url(path, query));
  }

  post<T>(path: string, body: unknown): Promise<T> {
    return this.send('POST', path, body);
  }

  send<T>(method: string, path: string, body?: unknown): Promise<T> {
    return this.json<T>(method, this.url(path), body);
  }

  url(path: string, query: Query = {}): string {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value === undefined || value === null || value === '') {
        continue;
      }
      for (const item of Array.isArray(value) ? value : [value]) {
        search.append(name, String(item));
      }
    }
    const text = search.toString();
    const url = URLExt.join(this.settings.baseUrl, ROOT, path);
    return text ? `${url}?${text}` : url;
  }

  private async json<T>(
    method: string,
    url: string,
    body?: unknown
  ): Promise<T> {
    const response = await this.fetch(method, url, body);
    if (response.status === 204) {
      return undefined as T;
    }
    return parseJson<T>(await response.text());
  }

  private async fetch(
    method: string,
    url: string,
    body?: unknown
  ): Promise<Response> {
    const init: RequestInit = { method };
    if (body !== undefined) {
      init.body = stringifyJson(body);
    }
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this.settings);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      throw new ConvectError(message, 0, 'unreachable');
    }
    noteServerDate(response.headers.get('Date'));
    if (!response.ok) {
      throw await errorOf(response);
    }
    return response;
  }
}

async function errorOf(response: Response): Promise<ConvectError> {
  const { status, statusText } = response;
  try {
    const body = await response.json();
    return new ConvectError(
      body.message || statusText,
      status,
      body.code ?? String(status),
      body.hint ?? null
    );
  } catch {
    return new ConvectError(statusText || `HTTP ${status}`, status, 'http');
  }
}

function attemptPath({ run, step, attempt }: IAttemptKey): string {
  return `runs/${encode(run)}/steps/${encode(step)}/${attempt}`;
}

function encode(part: string): string {
  return encodeURIComponent(part);
}
