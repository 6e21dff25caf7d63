import { addNote } from '../actions';
import { FocusKeeper } from '../canvas/focus';
import { duplicate } from '../copying';
import type { ICanvas } from '../session';
import { openSession } from './opened';

// Browsers have it, jsdom does not.
globalThis.CSS ??= { escape: (text: string) => text } as typeof CSS;
globalThis.structuredClone ??= value => JSON.parse(JSON.stringify(value));

describe('the keyboard on the canvas', () => {
  let host: HTMLElement;
  let keeper: FocusKeeper;
  const found = jest.fn();

  const draw = (id: string) => {
    const node = document.createElement('div');
    node.className = 'react-flow__node';
    node.dataset.id = id;
    node.tabIndex = 0;
    host.append(node);
    return node;
  };
  /** What observers do comes before the next key. */
  const nextKey = () => Promise.resolve();

  beforeEach(() => {
    document.body.innerHTML = '';
    host = document.createElement('div');
    host.tabIndex = -1;
    document.body.append(host);
    found.mockClear();
    keeper = new FocusKeeper(host, found);
  });
  afterEach(() => keeper.dispose());

  it('is given to a node at once', () => {
    const node = draw('a');
    keeper.focus('a');
    expect(document.activeElement).toBe(node);
  });

  it('is given to a node as soon as it is drawn', async () => {
    draw('a').focus();
    keeper.focus('b');
    draw('other');
    await nextKey();
    expect(document.activeElement).not.toBe(host);
    const node = draw('b');
    await nextKey();
    expect(document.activeElement).toBe(node);
    expect(found).toHaveBeenCalledWith('b');
  });

  it('is left where somebody has gone meanwhile', async () => {
    keeper.focus('b');
    const node = draw('a');
    node.focus();
    draw('b');
    await nextKey();
    expect(document.activeElement).toBe(node);
  });

  it('stays with a node that is drawn anew', async () => {
    draw('a').focus();
    host.replaceChildren();
    const anew = draw('a');
    await nextKey();
    expect(document.activeElement).toBe(anew);
  });

  it('stays on the canvas when a node is gone', async () => {
    const node = draw('a');
    draw('b');
    node.focus();
    node.remove();
    await nextKey();
    expect(document.activeElement).toBe(host);
  });

  it('is not taken from elsewhere when a node is gone', async () => {
    const field = document.createElement('input');
    document.body.append(field);
    const node = draw('a');
    node.focus();
    field.focus();
    node.remove();
    await nextKey();
    expect(document.activeElement).toBe(field);
  });

  it('is asked for in the very key press that makes something', () => {
    const { session } = openSession({
      convect: 1,
      nodes: { a: { kind: 'command', command: ['true'] } }
    });
    const canvas = { editNote: jest.fn(), focus: jest.fn() };
    session.canvas = {
      ...canvas,
      center: () => ({ x: 0, y: 0 })
    } as unknown as ICanvas;
    session.select(['a']);
    duplicate(session);
    expect(canvas.focus).toHaveBeenCalledWith('a-2');
    addNote(session);
    expect(canvas.editNote).toHaveBeenCalledWith('note');
    session.dispose();
  });
});
