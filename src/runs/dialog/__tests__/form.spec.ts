import { nullTranslator } from '@jupyterlab/translation';
import type { JSONObject } from '@lumino/coreutils';

import type { IConvectApi, IRequest, ISweepRequest } from '../../../api';
import { loggedOut } from '../../../api';
import type { ISubject } from '../choice';
import { RunDialog } from '../dialog';
import { unapproved } from '../document';
import type { IFormOptions } from '../form';
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
    runtimes: async () => ({
      runtimes: [
        {
          name: 'local',
          display_name: '',
          features: [],
          options_schema: {},
          problem: null
        }
      ]
    }),
    about: async () => ({ default_runtime: 'local' }),
    profiles: async () => ({ profiles: [], images: [], registries: [] }),
    describe: async () => {
      throw new Error('This is an Elyra pipeline.');
    },
    check: async (_: string, request: IRequest) => {
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
  } as unknown as IConvectApi;
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
      unsaved: { names: ['a.pipeline'], save: async () => undefined }
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
      unsaved: {
        names: ['a.pipeline'],
        save: async () => {
          order.push('saved');
        }
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

describe('the form', () => {
  const subject = { path: 'a.ipynb', document: null, title: 'a.ipynb' };
  const parameter = {
    name: 'n',
    type: 'integer',
    default: 1,
    source: '1',
    help: null,
    choices: [],
    required: false
  };
  const discover = async () => ({
    kind: 'notebook',
    kernel: 'python3',
    parameters: [parameter]
  });
  const make = (
    api: object,
    options: Partial<IFormOptions> = {},
    what: ISubject = subject
  ) =>
    new RunForm(
      { ...new Server().api, discover, ...api } as unknown as IConvectApi,
      what,
      trans,
      { choice: null, ...options }
    );

  it('offers the sweep of last time, and makes one run unless it is taken', async () => {
    const choice = { parameters: { n: { text: '1..30', several: true } } };
    const form = make({}, { choice, isRemembered: true });
    await form.ready;
    expect(form.outcome.size).toBe(1);
    expect(form.offered).toEqual(choice.parameters);
    form.takeOffered();
    expect(form.outcome.size).toBe(30);
    expect(form.offered).toEqual({});
    form.dispose();
  });

  it('does not run what cannot be read, and still says where one could', async () => {
    const form = make({
      discover: async () => {
        throw new Error('corrupt.ipynb is not a notebook.');
      }
    });
    await form.ready;
    expect(form.failure).toBe('corrupt.ipynb is not a notebook.');
    expect(form.canRun).toBe(false);
    expect(form.runtimes).toHaveLength(1);
    form.dispose();
  });

  it('looks at nothing any more once it is closed, also before it has loaded', async () => {
    jest.useFakeTimers();
    try {
      const form = make({});
      form.dispose();
      await form.ready;
      expect(jest.getTimerCount()).toBe(0);
    } finally {
      jest.useRealTimers();
    }
  });

  it('removes a setting with what is empty without it', async () => {
    const form = make({});
    await form.ready;
    form.setSetting(['resources', 'cpu'], '2');
    form.setSetting(['kernel'], 'ir');
    expect(form.outcome.request.settings).toEqual({
      resources: { cpu: '2' },
      kernel: 'ir'
    });
    form.setSetting(['resources', 'cpu'], undefined);
    expect(form.outcome.request.settings).toEqual({ kernel: 'ir' });
    form.dispose();
  });

  it('lets the component that is in the way be approved in place', async () => {
    const definition = { name: 'Add' };
    const content = {
      convect: 1,
      nodes: { add: { kind: 'component', component: 'sha256:1' } },
      components: { 'sha256:1': definition }
    };
    const posted: unknown[] = [];
    const form = make(
      {
        approveComponent: async (request: unknown) => void posted.push(request)
      },
      {},
      { ...subject, path: 'a.pipeline', content }
    );
    await form.ready;
    const problem = {
      severity: 'error',
      code: 'component-not-approved',
      message: '',
      node: 'add.task-1'
    } as const;
    expect(unapproved(form.subject, { ...problem, node: 'other' })).toBeNull();
    await form.approve(unapproved(form.subject, problem)!);
    expect(posted).toEqual([{ definition, approved: true }]);
    form.dispose();
  });

  it('runs several files in the order that is chosen, with their parameters', async () => {
    const form = make({}, { files: ['b.ipynb', 'a.py'] });
    await form.ready;
    expect(form.parameters.map(({ name }) => name)).toEqual(['n']);
    form.moveFile(1);
    expect(form.files?.paths).toEqual(['a.py', 'b.ipynb']);
    const { nodes } = form.outcome.request.document as JSONObject;
    expect(nodes).toMatchObject({ a: {}, b: { after: ['a'] } });
    form.dispose();
  });
});

describe('a form whose session has ended', () => {
  it('asks again by itself, and can be sent once somebody has logged in', async () => {
    jest.useFakeTimers();
    try {
      const server = new Server();
      const check = server.api.check;
      let isIn = false;
      Object.assign(server.api, {
        check: async (name: string, request: IRequest) => {
          if (!isIn) {
            throw loggedOut(403);
          }
          return check(name, request);
        }
      });
      const subject = { path: 'a.pipeline', document, title: 'a' };
      const form = new RunForm(server.api, subject, trans, { choice: null });
      await form.ready;
      await jest.advanceTimersByTimeAsync(5000);
      expect(form.canRun).toBe(false);
      expect(form.problems[0].message).toContain('Your session has ended.');
      isIn = true;
      await jest.advanceTimersByTimeAsync(5000);
      expect(form.canRun).toBe(true);
      form.dispose();
    } finally {
      jest.useRealTimers();
    }
  });
});

describe('the dialog', () => {
  it('tells of what has begun although it was cancelled meanwhile', async () => {
    let answer: (view: object) => void = () => undefined;
    const api = {
      ...new Server().api,
      submit: () => new Promise(resolve => (answer = resolve))
    } as unknown as IConvectApi;
    const subject = { path: 'a.pipeline', document, title: 'a' };
    const form = new RunForm(api, subject, trans, { choice: null });
    await form.ready;
    const dialog = new RunDialog(form);
    const asked = dialog.ask();
    dialog.resolve();
    await new Promise(resolve => setTimeout(resolve));
    expect(form.isBusy).toBe(true);
    dialog.resolve(0);
    answer({ id: 'r', name: 'a' });
    expect(await asked).toEqual({
      begun: { kind: 'run', id: 'r', name: 'a' }
    });
    dialog.dispose();
    form.dispose();
  });
});
