import type { JSONObject } from '@lumino/coreutils';
import { ServerConnection } from '@jupyterlab/services';

import type { IConvectApi } from '..';
import { ConvectError, createApi, fileOperation, sentenceOf } from '..';

function apiThatAnswers(
  status: number,
  body: string,
  seen: Request[] = [],
  headers: Record<string, string> = {}
): IConvectApi {
  return createApi(
    ServerConnection.makeSettings({
      baseUrl: 'http://server/base/',
      fetch: async (input: RequestInfo | URL) => {
        seen.push(input as Request);
        return new Response(body, { status, headers });
      }
    })
  );
}

describe('the client of the REST interface', () => {
  it('asks below the base address, repeats lists and leaves out what is empty', () => {
    const api = apiThatAnswers(200, '{}');
    expect(
      api.url('listRuns', { state: ['failed', 'lost'], text: '', limit: 5 })
    ).toBe(
      'http://server/base/jupyterlab-convect/api/v1/runs?state=failed&state=lost&limit=5'
    );
  });

  it('escapes every part of a path, and keeps the folders of a file', () => {
    const file = { step: 'a/b', attempt: 2, file: 'files/data/数据 1.csv' };
    expect(apiThatAnswers(200, '').url(...fileOperation('r', file))).toBe(
      'http://server/base/jupyterlab-convect/api/v1/runs/r/steps/a%2Fb/2/files/data/%E6%95%B0%E6%8D%AE%201.csv'
    );
  });

  it('turns an answer of the server into one error with sentence and hint', async () => {
    const api = apiThatAnswers(
      404,
      '{"code":"missing","message":"There is no run r.","hint":"Look in the list."}'
    );
    const error = await api.run('r').catch(e => e);
    expect(error).toBeInstanceOf(ConvectError);
    expect(error.isMissing).toBe(true);
    expect(sentenceOf(error)).toBe('There is no run r. Look in the list.');
  });

  it('reads and writes every number', async () => {
    const seen: Request[] = [];
    const nan = '{"$numberDouble":"NaN"}';
    const seed = { $numberInteger: '9007199254740993' };
    const api = apiThatAnswers(
      200,
      `{"metrics":{"loss":${nan},"gain":{"$numberDouble":"-Infinity"}},"note":"NaN","parameters":{"seed":${JSON.stringify(seed)}}}`,
      seen
    );
    const { metrics, note, parameters } = await api.submit({
      parameters: { x: NaN }
    });
    expect(metrics).toEqual({ loss: NaN, gain: -Infinity });
    expect(note).toBe('NaN');
    expect(await seen[0].text()).toBe(`{"parameters":{"x":${nan}}}`);
    await api.submit({ parameters: parameters as JSONObject });
    expect(await seen[1].text()).toBe(
      `{"parameters":{"seed":${JSON.stringify(seed)}}}`
    );
  });

  it('leaves notebooks as they are', async () => {
    const body = '{"cells":[{"$numberDouble":"NaN"}]}';
    const key = { run: 'r', step: 's', attempt: 1 };
    const notebook = await apiThatAnswers(200, body).notebook(key);
    expect(JSON.stringify(notebook)).toBe(body);
  });

  it('says so when the answer is not ours', async () => {
    const error = await apiThatAnswers(502, '<html>')
      .about()
      .catch(e => e);
    expect(error).toBeInstanceOf(ConvectError);
    expect(error.isUnreachable).toBe(true);
  });

  it('says so when there is no answer', async () => {
    const api = createApi(
      ServerConnection.makeSettings({
        fetch: () => Promise.reject(new TypeError('Failed to fetch'))
      })
    );
    const error = await api.about().catch(e => e);
    expect(error.isUnreachable).toBe(true);
  });

  it('sends bodies as JSON', async () => {
    const seen: Request[] = [];
    await apiThatAnswers(201, '{"id":"r"}', seen).submit({ path: 'a.ipynb' });
    expect(seen[0].method).toBe('POST');
    expect(await seen[0].json()).toEqual({ path: 'a.ipynb' });
  });

  it('says that the session has ended, whatever the hub answers', async () => {
    const page = { 'Content-Type': 'text/html; charset=utf-8' };
    const answers: [number, string, Record<string, string>?][] = [
      [200, '<html>Log in</html>', page],
      [403, '<html>Forbidden</html>', page],
      [403, '{"message": "Forbidden", "reason": null}'],
      [403, '{"code": "logged-out", "message": "Ended.", "hint": null}'],
      [401, '']
    ];
    for (const [status, body, headers] of answers) {
      const api = apiThatAnswers(status, body, [], headers);
      const error = await api.about().catch(e => e);
      expect(error.isLoggedOut).toBe(true);
      expect(sentenceOf(error)).toContain('Log in again');
    }
    const refused = '{"code": "refused", "message": "No.", "hint": null}';
    const error = await apiThatAnswers(403, refused)
      .about()
      .catch(e => e);
    expect(error.isLoggedOut).toBe(false);
  });
});
