import { PromiseDelegate } from '@lumino/coreutils';

import { until } from '../../__tests__/until';
import type { ConvectApi, IRunPage, IRunQuery, IRunSummary } from '../../api';
import { PAGE_SIZE, RunPages } from '../pages';

/** A server with many runs, of which each answer is recorded. */
function server(total: number) {
  const asked: IRunQuery[] = [];
  const state = { total };
  const api = {
    listRuns: async (query: IRunQuery): Promise<IRunPage> => {
      asked.push(query);
      const { offset = 0, limit = 0 } = query;
      const count = Math.max(0, Math.min(limit, state.total - offset));
      const runs = Array.from({ length: count }, (_, index) => ({
        id: `run ${state.total - 1 - offset - index}`
      }));
      return { runs: runs as IRunSummary[], total: state.total, counts: {} };
    }
  } as unknown as ConvectApi;
  return { api, asked, state };
}

describe('RunPages', () => {
  it('loads only the part of 100 000 runs that is looked at', async () => {
    const { api, asked } = server(100000);
    const pages = new RunPages(api);
    pages.refresh();
    await until(() => pages.isReady);
    expect(pages.total).toBe(100000);
    pages.show(50000, 50020);
    await until(() => pages.at(50010) !== undefined);
    expect(asked.map(({ offset }) => offset)).toEqual([0, 50000]);
    pages.dispose();
  });

  it('shows what it has until something newer takes its place', async () => {
    const { api, state } = server(PAGE_SIZE);
    const pages = new RunPages(api);
    pages.refresh();
    await until(() => pages.isReady);
    state.total += 1;
    pages.refresh();
    expect(pages.at(0)?.id).toBe(`run ${PAGE_SIZE - 1}`);
    await until(() => pages.at(0)?.id === `run ${PAGE_SIZE}`);
    expect(pages.indexOf(`run ${PAGE_SIZE - 1}`)).toBe(1);
    pages.dispose();
  });

  it('never shows the answer to a question that was withdrawn', async () => {
    const slow = new PromiseDelegate<IRunPage>();
    let isAsked = false;
    const page = (id: string): IRunPage => ({
      runs: [{ id } as IRunSummary],
      total: 1,
      counts: {}
    });
    const api = {
      listRuns: async (query: IRunQuery) => {
        if (query.text !== 'slow') {
          return page('new');
        }
        isAsked = true;
        return slow.promise;
      }
    } as unknown as ConvectApi;
    const pages = new RunPages(api);
    pages.setFilter({ text: 'slow' });
    await until(() => isAsked);
    pages.setFilter({ text: 'quick' });
    slow.resolve(page('old'));
    await new Promise(resolve => setTimeout(resolve, 0));
    expect(pages.at(0)?.id).not.toBe('old');
    await until(() => pages.at(0)?.id === 'new');
    pages.dispose();
  });
});
