import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import type { IConvectApi, IMadeFile, IRunView, Version } from '../../api';
import { CommandIDs } from '../../commands';
import { VersionForm } from '../again';
import { Files } from '../page/files';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

let unmount: () => void;

async function render(element: JSX.Element): Promise<HTMLElement> {
  const place = document.createElement('div');
  const root = createRoot(place);
  await act(async () => root.render(element));
  unmount = () => act(() => root.unmount());
  return place;
}

afterEach(() => unmount());

describe('the files of a run', () => {
  const file: IMadeFile = {
    path: 'out/model.pkl',
    change: 'created',
    size: 3000,
    step: 'train',
    state: 'succeeded',
    replaced_by: null,
    attempt: 1,
    kept: true,
    file: 'made/out/model.pkl'
  };

  async function files(
    found: IMadeFile[],
    state: 'succeeded' | 'running' = 'succeeded'
  ): Promise<{ place: HTMLElement; executed: [string, unknown][] }> {
    const executed: [string, unknown][] = [];
    const api = {
      made: async (
        _: string,
        { offset = 0, limit = 1000 }: { offset?: number; limit?: number }
      ) => ({
        project: '/p',
        files: found.slice(offset, offset + limit),
        total: found.length,
        to_put: found.length,
        put: [],
        kept: {},
        deleted: 0
      }),
      url: (_: string, { run }: { run: string }) => `http://server/${run}`
    } as unknown as IConvectApi;
    const view = {
      id: 'r',
      state,
      files: null,
      steps_done: 1
    } as unknown as IRunView;
    const place = await render(
      <Files
        api={api}
        view={view}
        step="train"
        execute={(command, args) => executed.push([command, args])}
      />
    );
    return { place, executed };
  }

  it('are listed, opened, and put into the project', async () => {
    const other = { ...file, path: 'x.csv', step: 'other' };
    const gone = { ...file, path: 'gone', change: 'deleted', file: null };
    const all = [other, file, gone as IMadeFile];
    const { place, executed } = await files(all);
    const rows = [...place.querySelectorAll<HTMLElement>('[data-file]')];
    expect(rows.map(row => row.dataset.file)).toEqual([
      'out/model.pkl',
      'gone',
      'x.csv'
    ]);
    expect(rows[0].textContent).toContain('3.0 kB');
    expect(rows[0].textContent).toContain('Kept with the run');
    expect(rows[1].querySelector('button, a')).toBeNull();
    const [put, open] = place.querySelectorAll('button');
    act(() => put.click());
    act(() => open.click());
    expect(executed).toEqual([
      [CommandIDs.putFiles, { run: 'r' }],
      [
        CommandIDs.openFile,
        {
          run: 'r',
          step: 'train',
          attempt: 1,
          file: 'made/out/model.pkl',
          size: 3000
        }
      ]
    ]);
  });

  it('are asked for a page at a time', async () => {
    const many = Array.from({ length: 1300 }, (_, index) => ({
      ...file,
      path: `${index}.csv`,
      step: `loop.${index}`
    }));
    const { place } = await files(many);
    const shown = () => place.querySelectorAll('[data-file]').length;
    const more = () => [...place.querySelectorAll('button')].pop()!;
    expect(shown()).toBe(200);
    expect(more().textContent).toBe('Show 1100 more files');
    await act(async () => more().click());
    expect(shown()).toBe(1000);
    await act(async () => more().click());
    expect(shown()).toBe(1300);
    expect(place.textContent).not.toContain('did not succeed');
  });

  it('cannot be put into the project before the run has ended', async () => {
    const { place } = await files([file], 'running');
    const put = place.querySelector('button');
    expect(put?.disabled).toBe(true);
    expect(put?.title).toBe('The run has not ended yet.');
  });

  it('are none when there are none', async () => {
    const { place } = await files([]);
    expect(place.textContent).toBe('This run made no files.');
  });
});

describe('the question which version to run again', () => {
  it('starts from the files of today and shows each change', async () => {
    const chosen: Version[] = [];
    const place = await render(
      <VersionForm
        changes={[
          { path: 'a.ipynb', before: 'x', after: null },
          { path: 'b.py', before: null, after: 'y' }
        ]}
        onChoose={version => chosen.push(version)}
      />
    );
    const [today, run] = place.querySelectorAll('input');
    expect([today.checked, run.checked]).toEqual([true, false]);
    expect(place.textContent).toContain('2 files have changed');
    expect(place.textContent).toContain('The file no longer exists.');
    act(() => run.click());
    expect(chosen).toEqual(['run']);
    expect(run.checked).toBe(true);
  });
});
