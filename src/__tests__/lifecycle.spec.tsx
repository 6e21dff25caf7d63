import { Widget } from '@lumino/widgets';
import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { dragComponent } from '../catalog/drag';
import type { IEntry } from '../catalog/types';
import { useColours } from '../charts/colours';
import { useCanvasContext } from '../pipeline/canvas/useCanvasContext';
import { openSession } from '../pipeline/__tests__/opened';
import { PipelineEditor } from '../pipeline/editor';
import { RunModel } from '../runs/page';
import { PanelModel } from '../runs/panel/model';
import { FakeServer } from '../runs/__tests__/server';
import { until } from './until';

const EMPTY = { convect: 1, nodes: {} } as const;

/** Render a component that only uses a hook; `leave` takes it away again. */
function hooked<T>(use: () => T): { current: () => T; leave: () => void } {
  let value: T;
  const Probe = () => {
    value = use();
    return null;
  };
  const root = createRoot(document.createElement('div'));
  act(() => root.render(<Probe />));
  return { current: () => value!, leave: () => act(() => root.unmount()) };
}

describe('what is gone listens to nothing', () => {
  it('a press on a component that was taken away begins no drag', async () => {
    const added = jest.spyOn(document, 'addEventListener');
    const removed = jest.spyOn(document, 'removeEventListener');
    const press = { button: 0, clientX: 0, clientY: 0 } as React.PointerEvent;
    dragComponent(press, { digest: 'd' } as IEntry, async () => '{}');
    document.dispatchEvent(new Event('pointercancel'));
    const kinds = (spy: jest.SpyInstance) =>
      spy.mock.calls.map(([type]) => type).filter(type => /pointer/.test(type));
    expect(kinds(removed).sort()).toEqual(kinds(added).sort());
    added.mockRestore();
    removed.mockRestore();
  });

  it('a note is rendered once, whichever note is written', () => {
    const { session } = openSession(EMPTY);
    const rendermime = {} as never;
    const probe = hooked(() => useCanvasContext(session, rendermime));
    const before = probe.current().renderMarkdown;
    act(() => probe.current().editNote('a'));
    expect(probe.current().editedNote).toBe('a');
    expect(probe.current().renderMarkdown).toBe(before);
    probe.leave();
    session.dispose();
  });

  it('the page of a broken file goes with the file, and when it is mended', async () => {
    const { session } = openSession(EMPTY);
    const editor = new PipelineEditor(session, {} as never);
    await editor.ready.catch(() => undefined);
    session.context.model.fromString('{');
    await until(() => !editor.widgets[0].hasClass('jp-Convect-split'));
    const [page] = editor.widgets;
    session.context.model.fromString('{"convect": 1, "nodes": {}}');
    await until(() => page.isDisposed);
    const [split] = editor.widgets;
    session.context.model.fromString('{');
    await until(() => editor.widgets[0] !== split);
    editor.dispose();
    expect(split.isDisposed).toBe(true);
  });

  it('an editor that is behind another tab asks for nothing', () => {
    const { session } = openSession(EMPTY);
    const editor = new PipelineEditor(session, {} as never);
    editor.hide();
    Widget.attach(editor, document.body);
    expect(session.isShown).toBe(false);
    editor.show();
    expect(session.isShown).toBe(true);
    editor.dispose();
  });

  it('a chart that is gone reads no colours', async () => {
    jest.useFakeTimers();
    const probe = hooked(useColours);
    document.body.dataset.jpThemeName = 'Dark';
    await Promise.resolve();
    expect(jest.getTimerCount()).toBe(1);
    probe.leave();
    expect(jest.getTimerCount()).toBe(0);
    jest.useRealTimers();
  });

  it('the page of a run that is closed reads nothing on', async () => {
    const server = new FakeServer();
    server.put('r', 'running');
    const model = new RunModel(server.store, 'r');
    model.setShown(true);
    await until(() => model.view !== null);
    const tails = [model.log, model.events, model.replicas];
    model.dispose();
    expect(tails.map(tail => tail?.isDisposed)).toEqual([true, true, true]);
    server.store.dispose();
  });

  it('a closed panel of runs is told of no run', () => {
    const server = new FakeServer();
    const model = new PanelModel(server.store);
    model.dispose();
    const touched = jest.spyOn(model as never, 'touch');
    server.store.take([server.put('r', 'running')]);
    expect(touched).not.toHaveBeenCalled();
    server.store.dispose();
  });
});
