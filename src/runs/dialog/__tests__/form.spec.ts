import { nullTranslator } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import type { ConvectApi, IRequest, ISweepRequest } from '../../../api';
import { RunForm } from '../form';

const trans = nullTranslator.load('');
const document: JSONObject = {
  convect: 1,
  parameters: { fresh: { type: 'integer', default: 3 } },
  nodes: {}
};

class Server {
  checked: IRequest[] = [];
  submitted: (IRequest | ISweepRequest)[] = [];

  readonly api = {
    runtimes: async () => [
      {
        name: 'local',
        display_name: '',
        features: [],
        options_schema: {},
        problem: null
      }
    ],
    about: async () => ({ default_runtime: 'local' }),
    describe: async () => {
      throw new Error('This is an Elyra pipeline.');
    },
    check: async (request: IRequest) => {
      this.checked.push(request);
      return {
        problems: [],
        metrics: { names: ['loss'], complete: true, best: 'min:loss' }
      };
    },
    submit: async (request: IRequest) => {
      this.submitted.push(request);
      return { id: 'r', name: 'r' };
    }
  } as unknown as ConvectApi;
}

describe('the form for a pipeline that is open in its editor', () => {
  const subject = {
    path: 'a.pipeline',
    document,
    isInEditor: true,
    title: 'a.pipeline'
  };

  it('asks for what the editor has, not for what the disk has', async () => {
    const server = new Server();
    const form = new RunForm(server.api, subject, trans, {
      choice: null,
      save: async () => undefined
    });
    await form.ready;
    expect(form.failure).toBeNull();
    expect(form.parameters.map(({ name }) => name)).toEqual(['fresh']);
    expect(form.runtimes).toHaveLength(1);
    form.savesFirst = false;
    await form.submit();
    expect(server.submitted).toEqual([
      { path: 'a.pipeline', document, runtime: 'local' }
    ]);
    form.dispose();
  });

  it('names the file once it is saved', async () => {
    const server = new Server();
    const order: string[] = [];
    const form = new RunForm(server.api, subject, trans, {
      choice: null,
      save: async () => {
        order.push('saved');
      }
    });
    await form.ready;
    await form.submit();
    expect(order).toEqual(['saved']);
    expect(server.submitted).toEqual([
      { path: 'a.pipeline', runtime: 'local' }
    ]);
    form.dispose();
  });
});
