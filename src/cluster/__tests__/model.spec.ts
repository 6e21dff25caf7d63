import { PromiseDelegate } from '@lumino/coreutils';

import { ConvectError } from '../../api';
import type { IConvectApi } from '../../tokens';
import { ClusterModel } from '../model';

const runtime = (name: string) => ({ name, display_name: name, problem: null });

/** Answers for three runtimes: one at once, one never, one that is none of the page's places. */
function answers(asked: string[]): IConvectApi {
  const never = new PromiseDelegate<never>();
  return {
    runtimes: async () => ({
      runtimes: ['kfp', 'kubernetes', 'local'].map(runtime)
    }),
    top: async (name: string) => {
      asked.push(name);
      if (name === 'kfp') {
        throw new ConvectError('no', 404, 'no-capacity');
      }
      return name === 'local' ? { nodes: [] } : never.promise;
    }
  } as unknown as IConvectApi;
}

it('a cluster that does not answer holds up no other', async () => {
  const asked: string[] = [];
  const model = new ClusterModel(answers(asked));
  const seen = new PromiseDelegate<void>();
  model.changed.connect(() => {
    const local = model.runtimes?.find(({ name }) => name === 'local');
    if (
      asked.filter(name => name === 'local').length > 1 &&
      local?.overview &&
      model.runtimes?.length === 2
    ) {
      seen.resolve();
    }
  });
  model.setShown(true);
  await seen.promise;
  expect(asked.filter(name => name === 'kubernetes')).toHaveLength(1);
  expect(model.runtimes?.map(({ name }) => name)).toEqual([
    'local',
    'kubernetes'
  ]);
  model.dispose();
});
