import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { act } from 'react-dom/test-utils';

import type { IConvectApi, IReplica } from '../../../api';
import type { RunModel } from '../model';
import { failedFirst, followsJob, ReplicasModel } from '../ranks';
import Replicas from '../replicas';

function replica(rank: number, known: Partial<IReplica> = {}): IReplica {
  return {
    rank,
    state: 'running',
    reason: null,
    node: null,
    gpu: null,
    rate: null,
    exit_code: null,
    cpu: null,
    memory: null,
    gpu_load: null,
    gpu_memory: null,
    started: 1,
    ended: null,
    line: `step ${rank}`,
    ...known
  };
}

describe('followsJob', () => {
  it('is a command that follows a training job as it is', () => {
    expect(followsJob(['/bin/convect', 'training', 'run', 'a.yaml'])).toBe(
      true
    );
    expect(followsJob(['python', 'training.py', 'run'])).toBe(false);
    expect(followsJob(undefined)).toBe(false);
  });
});

describe('failedFirst', () => {
  it('puts those that failed first at the beginning', () => {
    const replicas = [
      replica(2, { state: 'failed', ended: 9 }),
      replica(0),
      replica(3, { state: 'failed', ended: 5 }),
      replica(1, { state: 'cancelled', ended: 6 })
    ];
    expect(failedFirst(replicas).map(({ rank }) => rank)).toEqual([3, 2, 0, 1]);
  });
});

describe('Replicas', () => {
  const key = { run: 'r', step: 's', attempt: 1 };
  const asked: unknown[] = [];
  const api = {
    replicas: async () => ({
      complete: true,
      replicas: Array.from({ length: 512 }, (_, rank) =>
        rank === 300
          ? replica(rank, {
              state: 'failed',
              ended: 2,
              node: 'gpu-7',
              reason: 'The process exited with code 3.'
            })
          : replica(rank)
      )
    }),
    log: async (_: unknown, query: { replica?: number }) => {
      asked.push(query.replica);
      return { text: '', offset: 0, complete: true };
    }
  } as unknown as IConvectApi;

  it('shows a tile per rank, the failed one first, with its log', async () => {
    const place = document.createElement('div');
    document.body.append(place);
    const root = createRoot(place);
    const replicas = new ReplicasModel(api, key);
    const model = { replicas, isShown: true, api } as unknown as RunModel;
    await act(async () =>
      root.render(<Replicas model={model} openTerminal={null} />)
    );
    const tiles = place.querySelectorAll<HTMLElement>('[role=option]');
    expect(tiles.length).toBe(512);
    expect(tiles[0].dataset.state).toBe('failed');
    expect(tiles[0].getAttribute('aria-selected')).toBe('true');
    expect(place.textContent).toContain('The process exited with code 3.');
    expect(asked).toEqual([300]);
    await act(async () => {
      tiles[0].dispatchEvent(
        new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true })
      );
    });
    expect(tiles[1].getAttribute('aria-selected')).toBe('true');
    expect(document.activeElement).toBe(tiles[1]);
    expect(asked).toEqual([300, 0]);
    act(() => root.unmount());
    replicas.dispose();
    place.remove();
  });

  it('turns amber what hangs, and says what the chosen rank uses', async () => {
    const reason =
      'It seems to hang: no output and no use of a CPU or GPU for 10 min.';
    const hanging = {
      ...api,
      replicas: async () => ({
        complete: false,
        replicas: [
          replica(0, { reason, cpu: 0.04, memory: 2.5e9, gpu_load: 3 }),
          replica(1)
        ]
      })
    } as unknown as IConvectApi;
    const place = document.createElement('div');
    const root = createRoot(place);
    const replicas = new ReplicasModel(hanging, key);
    const model = { replicas, isShown: true, api: hanging };
    await act(async () =>
      root.render(
        <Replicas model={model as unknown as RunModel} openTerminal={null} />
      )
    );
    const tiles = place.querySelectorAll<HTMLElement>('[role=option]');
    expect(tiles[0].dataset.hangs).toBe('');
    expect(tiles[1].dataset.hangs).toBeUndefined();
    expect(place.textContent).toContain('CPU 0 · 2.5 GB · GPU 3%');
    expect(place.textContent).toContain(reason);
    act(() => root.unmount());
    replicas.dispose();
  });

  it('opens a terminal where the chosen rank runs', async () => {
    const place = document.createElement('div');
    document.body.append(place);
    const root = createRoot(place);
    const replicas = new ReplicasModel(api, key);
    const about = {
      command: 'convect',
      runtimes: [{ name: 'kubernetes', features: ['shell'] }]
    };
    const model = {
      replicas,
      isShown: true,
      id: 'r',
      view: { runtime: 'kubernetes' },
      api: { ...api, about: async () => about }
    } as unknown as RunModel;
    const openTerminal = jest.fn();
    await act(async () =>
      root.render(<Replicas model={model} openTerminal={openTerminal} />)
    );
    const tiles = place.querySelectorAll<HTMLElement>('[role=option]');
    const button = () =>
      place.querySelector<HTMLElement>('[title^="Open a terminal"]');
    await act(async () => tiles[0].click());
    expect(button()).toBeNull(); // It has failed.
    await act(async () => tiles[3].click());
    await act(async () => button()?.click());
    const words = ['convect', 'runs', 'shell', 'r', 's', '--replica', '2'];
    expect(openTerminal).toHaveBeenCalledWith(words);
    act(() => root.unmount());
    replicas.dispose();
    place.remove();
  });
});
