import { signalToPromise } from '@jupyterlab/coreutils';

import { until } from '../../__tests__/until';
import type { IConvectApi } from '../../api';
import { CatalogModel } from '../model';
import type { ICatalog, IComponent, IEntry } from '../types';

function entry(name: string, digest = `sha256:${name}`): IEntry {
  return {
    catalog: 'c',
    source: `${name}.yaml`,
    part: 0,
    digest,
    name,
    description: '',
    format: 'v1',
    image: '',
    inputs: [],
    outputs: [],
    categories: ['Data'],
    update: null,
    gone: false,
    error: digest ? null : { message: 'It is broken.' }
  };
}

/** A server with one catalog, which answers when it is told to. */
class Server {
  catalog: ICatalog = {
    id: 'c',
    name: 'C',
    kind: 'url',
    urls: [],
    path: null,
    categories: [],
    auth: null,
    replacements: {},
    options: {},
    refresh: null,
    refreshed: null,
    error: null,
    progress: null,
    counts: { components: 0, errors: 0, updates: 0 }
  };
  list: IEntry[] = [];
  lists = 0;
  answers = new Map<string, (component: IComponent) => void>();

  read(...list: IEntry[]): void {
    this.list = list;
    this.catalog = {
      ...this.catalog,
      progress: null,
      refreshed: (this.catalog.refreshed ?? 0) + 1
    };
  }

  get api(): IConvectApi {
    return {
      catalogs: async () => ({
        catalogs: [this.catalog],
        kinds: ['url'],
        schemas: {}
      }),
      listComponents: async () => {
        this.lists += 1;
        const { length } = this.list;
        return { components: this.list, total: length, categories: [] };
      },
      component: (digest: string) =>
        new Promise<IComponent>(resolve => this.answers.set(digest, resolve))
    } as Partial<IConvectApi> as IConvectApi;
  }
}

const componentOf = (digest: string) => ({ digest }) as IComponent;

describe('CatalogModel', () => {
  let server: Server;
  let model: CatalogModel;

  beforeEach(async () => {
    server = new Server();
    server.read(entry('Alpha'), entry('Beta'), entry('Gamma', ''));
    model = new CatalogModel(server.api);
    model.isShown = true;
    await until(() => model.isReady);
  });

  afterEach(() => model.dispose());

  function names(): string[] {
    return model.rows.map(row =>
      row.kind === 'category' ? row.name : row.entry.name
    );
  }

  it('asks for the components only when a catalog has changed', async () => {
    const asked = server.lists;
    model.isShown = true;
    await signalToPromise(model.changed);
    expect(server.lists).toBe(asked);
    server.read(entry('Delta'));
    model.isShown = true;
    await until(() => names().includes('Delta'));
    expect(server.lists).toBe(asked + 1);
  });

  it('forgets components that no catalog has any more', async () => {
    const component = async () => {
      const answer = model.component(entry('Alpha').digest);
      server.answers.forEach((resolve, digest) => resolve(componentOf(digest)));
      return answer;
    };
    const first = await component();
    expect(await component()).toBe(first);
    server.read(entry('Beta'));
    model.isShown = true;
    await until(() => !names().includes('Alpha'));
    expect(await component()).not.toBe(first);
  });

  it('stays at the row that it is at when others come', async () => {
    model.moveTo(names().indexOf('Beta'));
    server.read(entry('Aardvark'), entry('Alpha'), entry('Beta'));
    model.isShown = true;
    await until(() => names().includes('Aardvark'));
    expect(names()[model.cursor]).toBe('Beta');
  });

  it('goes to the first that is found, and opens its category', () => {
    model.toggle('Data');
    expect(names()).toEqual(['Data']);
    model.search('bet');
    expect(names()).toEqual(['Data', 'Beta']);
    expect(names()[model.cursor]).toBe('Beta');
    model.search('');
    expect(names()).toEqual(['Data']);
  });

  it('does not count what could not be read as a component', () => {
    expect(names()).toContain('Gamma');
    expect(model.found).toBe(2);
  });

  it('reveals what could not be read', () => {
    model.toggle('Data');
    model.reveal('c', 'errors');
    expect(names()[model.cursor]).toBe('Gamma');
    expect(model.preview?.entry.error?.message).toBe('It is broken.');
  });

  it('shows the component that is looked at, not one that answers late', async () => {
    model.moveTo(names().indexOf('Alpha'));
    await until(() => server.answers.has('sha256:Alpha'));
    model.moveTo(names().indexOf('Beta'));
    server.answers.get('sha256:Alpha')!(componentOf('sha256:Alpha'));
    await until(() => server.answers.has('sha256:Beta'));
    expect(model.preview).toMatchObject({ component: null });
    server.answers.get('sha256:Beta')!(componentOf('sha256:Beta'));
    await until(() => model.preview?.component !== null);
    expect(model.preview?.component?.digest).toBe('sha256:Beta');
  });

  it('follows a catalog until it has been read', async () => {
    const begun = server.catalog;
    server.catalog = { ...begun, progress: { done: 1, total: 2 } };
    const done = model.follow(begun);
    await until(() => !!model.catalog('c')?.progress);
    server.read(entry('Omega'));
    expect(await done).toMatchObject({ id: 'c', progress: null });
    expect(names()).toEqual(['Data', 'Omega']);
  });
});
