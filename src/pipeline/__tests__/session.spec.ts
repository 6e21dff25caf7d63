import { Notification } from '@jupyterlab/apputils';
import type { Contents } from '@jupyterlab/services';
import { Signal } from '@lumino/signaling';

import { until } from '../../__tests__/until';
import type { IAbout, IConvectApi } from '../../api';
import { removeTargets } from '../actions';
import { move } from '../positions';
import { findNodes } from '../canvas/Finder';
import { updateComponent } from '../components';
import { copyTargets, pasteText } from '../copying';
import { exportToKfp } from '../download';
import { publish } from '../publish';
import { FileFacts } from '../files';
import { OutsideWatch } from '../outside';
import type { IDocument } from '../schema';
import { Store } from '../store';
import { openSession } from './opened';

const CHAIN: IDocument = {
  convect: 1,
  nodes: {
    load: { kind: 'command', command: ['load'] },
    clean: { kind: 'command', command: ['clean'], after: ['load'] },
    fit: { kind: 'command', command: ['fit'], after: ['load', 'clean'] },
    part: { kind: 'group', members: ['clean', 'fit'] }
  },
  layout: { load: [0, 0], clean: [300, 0], fit: [600, 0] }
};

describe('Session', () => {
  it('downloads what Kubeflow Pipelines takes, of the pipeline as it is', async () => {
    const exportPipeline = jest.fn(async () => ({ text: 'x', problems: [] }));
    const { session } = openSession(CHAIN, { api: { exportPipeline } });
    const names: string[] = [];
    URL.createObjectURL = () => 'blob:x';
    URL.revokeObjectURL = () => undefined;
    const click = jest
      .spyOn(HTMLAnchorElement.prototype, 'click')
      .mockImplementation(function (this: HTMLAnchorElement) {
        names.push(this.download);
      });
    await exportToKfp(session);
    click.mockRestore();
    expect(names).toEqual(['a.yaml']);
    expect(exportPipeline).toHaveBeenCalledWith({
      to: 'kfp',
      path: 'work/a.pipeline',
      document: session.document
    });
  });

  it('publishes the pipeline as it is, where pipelines are kept', async () => {
    const publishPipeline = jest.fn(async () => ({
      pipeline: 'p',
      version: 'v',
      page: 'https://kubeflow/#/pipelines/details/p/version/v',
      problems: []
    }));
    const runtimes = ['local', 'team'].map(name => ({
      name,
      display_name: name,
      features: name === 'team' ? ['publish'] : [],
      problem: null
    }));
    const about = async () => ({ runtimes }) as unknown as IAbout;
    const { session } = openSession(CHAIN, { api: { publishPipeline, about } });
    const shown = jest.spyOn(Notification, 'success').mockReturnValue('');
    const ended = publish(session);
    const find = () =>
      document.querySelector<HTMLInputElement>('.jp-Dialog input');
    await until(() => find() !== null);
    const name = find()!;
    expect(name.value).toBe('a');
    name.value = '流失';
    name.dispatchEvent(new Event('input'));
    document.querySelector<HTMLElement>('.jp-Dialog .jp-mod-accept')!.click();
    await ended;
    expect(publishPipeline).toHaveBeenCalledWith('team', {
      name: '流失',
      path: 'work/a.pipeline',
      document: session.document
    });
    expect(shown.mock.calls[0][0]).toContain('流失');
    shown.mockRestore();
    session.dispose();
  });

  it('deletes all that the line of a folded group stands for', () => {
    const { session } = openSession({
      ...CHAIN,
      layout: { ...CHAIN.layout, part: { at: [300, 0], folded: true } }
    });
    session.select([], ['load>>part']);
    removeTargets(session);
    const { clean, fit } = session.document.nodes;
    expect(clean).toEqual({ kind: 'command', command: ['clean'] });
    expect(fit).toMatchObject({ after: ['clean'] });
    session.doc.undo();
    expect(session.document.nodes.clean).toMatchObject({ after: ['load'] });
    expect(session.document.nodes.fit).toMatchObject({
      after: ['load', 'clean']
    });
    session.dispose();
  });

  it('is read only when the file is, and no longer when it is not', async () => {
    const { session, contentsModel } = openSession(CHAIN, {
      contents: { writable: false }
    });
    await session.context.ready;
    expect(session.isReadOnly).toBe(true);
    Object.assign(contentsModel, { writable: true });
    (session.context.fileChanged as Signal<unknown, unknown>).emit(
      contentsModel
    );
    expect(session.isReadOnly).toBe(false);
    session.dispose();
  });

  it('pastes what is in the clipboard, or nothing', () => {
    const { session } = openSession(CHAIN);
    session.select(['load']);
    const clip = copyTargets(session);
    const count = () => Object.keys(session.document.nodes).length;
    pasteText(session, 'a text of somebody else', { x: 0, y: 0 });
    expect(count()).toBe(4);
    pasteText(session, clip, { x: 0, y: 0 });
    expect(count()).toBe(5);
    // Where a page has no access to the clipboard.
    pasteText(session, null, { x: 0, y: 0 });
    expect(count()).toBe(6);
    session.dispose();
  });

  it('checks what means something, not where it is', async () => {
    let checks = 0;
    const { session } = openSession(CHAIN, {
      api: {
        validate: async () => {
          checks += 1;
          return { problems: [] };
        }
      }
    });
    await until(() => checks === 1);
    const request = jest.spyOn(session.checker, 'request');
    move(session.doc, new Map([['load', { x: 50, y: 50 }]]));
    expect(request).not.toHaveBeenCalled();
    session.doc.edit(draft => draft.set(['nodes', 'load', 'name'], 'Load'));
    expect(request).toHaveBeenCalledTimes(1);
    session.dispose();
  });
});

describe('updateComponent', () => {
  it('brings every node of a component to the version of the catalogs', async () => {
    const node = { kind: 'component', component: 'old', source: 'c.yaml' };
    const { session } = openSession(
      {
        convect: 1,
        nodes: { a: node, b: { ...node } },
        components: { old: { name: 'Load' } }
      } as unknown as IDocument,
      {
        api: {
          listComponents: async () => ({
            components: [
              { digest: 'other', name: 'Other', source: 'c.yaml' },
              { digest: 'new', name: 'Load', source: 'c.yaml' }
            ]
          }),
          component: async () => ({ definition: { name: 'Load', inputs: [] } })
        } as unknown as IConvectApi
      }
    );
    expect(await updateComponent(session, 'a')).toBe(2);
    expect(session.document.nodes.b).toMatchObject({ component: 'new' });
    expect(Object.keys(session.document.components!)).toEqual(['new']);
    expect(await updateComponent(session, 'a')).toBe(0);
    session.doc.undo();
    expect(session.document.nodes.a).toMatchObject({ component: 'old' });
    session.dispose();
  });
});

describe('findNodes', () => {
  it('finds what cards say, in reading order', () => {
    const { session } = openSession({
      ...CHAIN,
      comments: { note: { text: 'Clean it up' } }
    });
    expect(findNodes(session, 'CLEAN')).toEqual(['note', 'clean']);
    expect(findNodes(session, ' ')).toEqual([]);
    session.dispose();
  });
});

describe('FileFacts', () => {
  const changed = new Signal<Contents.IManager, Contents.IChangedArgs>(
    {} as Contents.IManager
  );
  const contents = { fileChanged: changed, localPath: (path: string) => path };

  it('asks for all files in one question, and again only for what may differ', async () => {
    const asked: { [place: string]: string | null }[] = [];
    const stamps: { [place: string]: string } = {};
    const ask = async ({ files }: { files: (typeof asked)[0] }) => {
      asked.push(files);
      return {
        files: Object.fromEntries(
          Object.entries(files)
            .filter(([place, stamp]) => stamp !== (stamps[place] ?? 'one'))
            .map(([place]) => [
              place,
              { stamp: stamps[place] ?? 'one', found: { kind: 'notebook' } }
            ])
        )
      };
    };
    const facts = new FileFacts(
      { discoverChanged: ask as never },
      contents,
      path => (path.startsWith('..') ? null : `work/${path}`)
    );
    let updates = 0;
    facts.store.changed.connect(() => updates++);
    const names = Array.from({ length: 150 }, (_, index) => `n${index}.ipynb`);
    facts.want([...names, '../x.ipynb']);
    const known = () => facts.store.value.found;
    await until(() => known().size === 151);
    expect(asked.length).toBe(1);
    expect(updates).toBeLessThanOrEqual(2);
    expect(known().get('../x.ipynb')).toMatchObject({ isMissing: true });

    const before = known();
    facts.request();
    await until(() => asked.length === 2);
    expect(asked[1]['work/n7.ipynb']).toBe('one');
    stamps['work/n7.ipynb'] = 'two';
    facts.request();
    await until(() => known() !== before);
    expect(known().get('n8.ipynb')).toBe(before.get('n8.ipynb'));
    expect(known().get('n7.ipynb')).not.toBe(before.get('n7.ipynb'));
    facts.dispose();
  });

  it('takes the newer answer of a file that is saved while it is asked about', async () => {
    const open: ((kernel: string) => void)[] = [];
    const ask = () =>
      new Promise(resolve =>
        open.push(kernel =>
          resolve({
            files: { 'a.ipynb': { stamp: kernel, found: { kernel } } }
          })
        )
      );
    const facts = new FileFacts(
      { discoverChanged: ask as never },
      contents,
      path => path
    );
    facts.want(['a.ipynb']);
    await until(() => open.length === 1);
    changed.emit({
      type: 'save',
      oldValue: null,
      newValue: { path: 'a.ipynb' }
    });
    open[0]('old');
    await until(() => open.length === 2);
    open[1]('new');
    await until(
      () =>
        (facts.store.value.found.get('a.ipynb') as { kernel?: string })
          ?.kernel === 'new'
    );
    expect(open.length).toBe(2);
    facts.dispose();
  });
});

describe('OutsideWatch', () => {
  it('notices content that comes back after the file was saved here', async () => {
    const contentsModel = { hash: 'first' };
    let disk = 'first';
    let reloads = 0;
    const watch = new OutsideWatch({
      isShown: true,
      files: { request: () => undefined },
      state: new Store({}),
      context: {
        path: 'a',
        contentsModel,
        ready: new Promise(() => undefined),
        model: { dirty: false, collaborative: false }
      },
      contents: { get: async () => ({ hash: disk }) },
      reload: async () => {
        reloads++;
        contentsModel.hash = disk;
      }
    } as never);
    disk = 'other';
    await watch.look();
    expect(reloads).toBe(1);
    contentsModel.hash = disk = 'saved here';
    await watch.look();
    expect(reloads).toBe(1);
    disk = 'other';
    await watch.look();
    expect(reloads).toBe(2);
    watch.dispose();
  });
});
