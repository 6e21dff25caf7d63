import { nullTranslator } from '@jupyterlab/translation';

import { until } from '../../__tests__/until';
import type { IConvectApi } from '../../api';
import { changedEntry } from '../../settings/sweepchoice';
import { cellsOf } from '../calendar';
import type { IScheduleValues } from '../form';
import { ScheduleForm, secondsAt } from '../form';
import type { ISchedule, IScheduleBody, ITrigger } from '../types';
import { clockLabel, durationText, parseDuration, timeIn } from '../words';

const trans = nullTranslator.load('jupyterlab_convect');

describe('durations', () => {
  it.each([
    ['90', 90],
    ['15m', 900],
    ['1h30m', 5400],
    ['1d', 86400],
    ['0.5h', 1800]
  ])('%s is %d seconds', (text, seconds) => {
    expect(parseDuration(text)).toBe(seconds);
  });

  it.each(['', 'soon', '6 hours', '-1h', '1h2'])('%s is none', text => {
    expect(parseDuration(text)).toBeNull();
  });

  it('are written as they are read', () => {
    for (const seconds of [1, 90, 3600, 5400, 86400, 90061]) {
      expect(parseDuration(durationText(seconds))).toBe(seconds);
    }
  });
});

it('shows times as the clocks of the zone show them', () => {
  const due = Date.UTC(2026, 4, 1, 20) / 1000;
  expect(timeIn(due, 'Asia/Shanghai')).toContain('04:00');
  expect(timeIn(due, 'Nowhere/At-all')).toContain('20:00');
  expect(clockLabel(trans, { cron: '@daily', zone: 'UTC' })).toBe(
    '@daily (UTC)'
  );
  expect(clockLabel(trans, { every: 21600 })).toBe('every 6h');
});

it('puts the days of a calendar into weeks', () => {
  const cells = cellsOf([
    { day: '2026-10-23', counts: { ran: 1 } },
    { day: '2026-10-26', counts: { ran: 3, failed: 1 } },
    { day: '2026-11-02', counts: { due: 2 } }
  ]);
  expect(cells.map(({ column, row, worst }) => [column, row, worst])).toEqual([
    [0, 4, 'ran'],
    [1, 0, 'failed'],
    [2, 0, 'due']
  ]);
  expect(cells.map(({ heat }) => heat)).toEqual([0.25, 1, 0.5]);
});

describe('the form', () => {
  const server = (sent: IScheduleBody[] = []) =>
    ({
      discover: async () => ({
        parameters: [
          { name: 'n', type: 'integer', default: 1, choices: [] },
          { name: 'text', type: 'string', default: '', choices: [] }
        ]
      }),
      check: async () => ({ problems: [], metrics: null }),
      runtimes: async () => ({ runtimes: [] }),
      listSchedules: async () => ({ schedules: [], keeper: null }),
      nextTimes: async () => ({ next: [1, 2, 3, 4, 5], shifts: [] }),
      addSchedule: async (body: IScheduleBody) => {
        sent.push(body);
        return { id: 's' } as ISchedule;
      },
      updateSchedule: async (_: string, body: IScheduleBody) => {
        sent.push(body);
        return { id: 's' } as ISchedule;
      }
    }) as unknown as IConvectApi;

  it('shows the next times and sends what was chosen', async () => {
    const sent: IScheduleBody[] = [];
    const form = new ScheduleForm(server(sent), 'a.ipynb', trans);
    await form.ready;
    await until(() => form.upcoming !== null);
    expect(form.upcoming?.next).toHaveLength(5);
    // Times of one clock are never shown beside another one.
    form.set({ kind: 'every' });
    expect(form.upcoming).toBeNull();
    form.set({ kind: 'cron' });
    await until(() => form.upcoming !== null);
    form.set({ kind: 'every', every: '6h', zone: 'UTC', missed: 'all' });
    form.setEntry(form.parameters[0], { text: '3', several: false });
    expect((await form.submit())?.id).toBe('s');
    expect(sent[0]).toMatchObject({
      request: { path: 'a.ipynb', parameters: { n: 3 } },
      clock: { every: 21600, zone: 'UTC' },
      missed: 'all',
      deadline: 86400
    });
    form.dispose();
  });

  const typed = (form: ScheduleForm, texts: Record<string, string>) => {
    for (const parameter of form.parameters) {
      const text = texts[parameter.name];
      if (text !== undefined) {
        const change = { text };
        form.setEntry(parameter, changedEntry(form.entries, parameter, change));
      }
    }
  };

  it('gives parameters the type that they are declared with, and refuses others', async () => {
    const sent: IScheduleBody[] = [];
    const form = new ScheduleForm(server(sent), 'a.ipynb', trans);
    await form.ready;
    typed(form, { n: 'three' });
    expect(await form.submit()).toBeNull();
    expect(form.errors).toEqual({ 'parameter n': 'Give a whole number.' });
    typed(form, { n: '${{ schedule.body.n }}', text: 'line 1\nline 2' });
    await form.submit();
    expect(sent[0].request.parameters).toEqual({
      n: '${{ schedule.body.n }}',
      text: 'line 1\nline 2'
    });
    expect(secondsAt('x')).toBeNull();
    form.dispose();
  });

  it('makes a sweep of several values, and keeps it when it is edited', async () => {
    const sent: IScheduleBody[] = [];
    const form = new ScheduleForm(server(sent), 'a.ipynb', trans);
    await form.ready;
    typed(form, { n: '1..3', text: '${{ schedule.date }}' });
    expect([form.isSweep, form.size]).toEqual([true, 3]);
    form.setSweepChoice({ goal: 'max', metric: 'auc', concurrency: '2' });
    await form.submit();
    const sweep = {
      space: { n: { from: 1, to: 3, step: 1 } },
      mode: 'grid',
      concurrency: 2,
      select: 'max:auc'
    };
    expect(sent[0].sweep).toEqual(sweep);
    expect(sent[0].request.parameters).toEqual({
      text: '${{ schedule.date }}'
    });
    form.dispose();

    const seeded = { ...sweep, seed: 7 };
    const known = {
      ...{ id: 's', name: 'nightly', clock: { cron: '@daily' }, trigger: null },
      ...{ overlap: 'skip', concurrency: 1, missed: 'last', deadline: 60 },
      ...{ kept_by: 'here', pinned: false, sweep: seeded },
      request: { path: 'a.ipynb', parameters: { gone: 1 } }
    } as unknown as ISchedule;
    const edited = new ScheduleForm(server(sent), 'a.ipynb', trans, known);
    await edited.ready;
    expect(edited.entries.n).toEqual({ text: '1..3 step 1', several: true });
    await edited.submit();
    expect(sent[1].sweep).toEqual(seeded);
    expect(sent[1].request.parameters).toEqual({ gone: 1 });
    edited.setEntry(edited.parameters[0], null);
    await edited.submit();
    expect(sent[2].sweep).toBeNull();
    edited.dispose();
  });

  it.each([
    [
      { kind: 'file', pattern: 'in/*.csv', settle: '1m', changed: false },
      { file: { pattern: 'in/*.csv', settle: 60, changed: false } }
    ],
    [
      { kind: 'run', after: 'prepare.ipynb', afterState: 'failed' },
      { run: { path: 'prepare.ipynb', states: ['failed', 'lost'] } }
    ],
    [
      { kind: 'run', after: 'nightly*' },
      { run: { name: 'nightly*', states: ['succeeded', 'cached'] } }
    ],
    [{ kind: 'call' }, { call: {} }]
  ] as [Partial<IScheduleValues>, ITrigger][])(
    'sends the trigger of %j, and waits with what it brings',
    async (values, trigger) => {
      const sent: IScheduleBody[] = [];
      const form = new ScheduleForm(server(sent), 'a.ipynb', trans);
      form.set(values);
      expect(form.complaints).toEqual({});
      await form.submit();
      expect(sent[0].trigger).toEqual(trigger);
      expect(sent[0].overlap).toBe('queue');
      expect(sent[0].clock).not.toHaveProperty('cron');
      form.dispose();
    }
  );

  it('keeps a trigger beside a clock, and gives up that of another kind', async () => {
    const sent: IScheduleBody[] = [];
    const api = {
      ...server(),
      updateSchedule: async (_: string, body: IScheduleBody) => {
        sent.push(body);
        return {} as ISchedule;
      }
    } as IConvectApi;
    const view = {
      id: 's',
      name: 's',
      clock: { cron: '@daily', zone: 'UTC' },
      trigger: { file: { pattern: '*.csv' } },
      request: {},
      overlap: 'skip',
      concurrency: 1,
      missed: 'last',
      deadline: 60,
      pinned: false
    } as unknown as ISchedule;
    const both = new ScheduleForm(api, 'a.ipynb', trans, view);
    await both.submit();
    expect(sent[0].trigger).toEqual(view.trigger);
    const alone = { ...view, clock: { zone: 'UTC' } };
    const form = new ScheduleForm(api, 'a.ipynb', trans, alone);
    expect(form.values).toMatchObject({ kind: 'file', pattern: '*.csv' });
    form.set({ kind: 'cron' });
    await form.submit();
    expect(sent[1].trigger).toEqual({});
    both.dispose();
    form.dispose();
  });

  it('offers the clock of a cluster where it keeps one', async () => {
    const sent: IScheduleBody[] = [];
    const runtimes = [
      { name: 'local', features: [] },
      { name: 'kubernetes', features: ['clock'] }
    ];
    const api = {
      ...server(sent),
      runtimes: async () => ({ runtimes })
    } as unknown as IConvectApi;
    const form = new ScheduleForm(api, 'a.ipynb', trans);
    await form.ready;
    form.set({ keptBy: 'runtime' });
    expect(form.keptBy).toBe('here');
    form.set({ runtime: 'kubernetes' });
    expect(form.keptBy).toBe('runtime');
    await form.submit();
    form.set({ kind: 'call' });
    await form.submit();
    expect(sent.map(body => body.kept_by)).toEqual(['runtime', 'here']);
    form.dispose();
  });

  it('says what is wrong before anything is sent', async () => {
    const sent: IScheduleBody[] = [];
    const form = new ScheduleForm(server(sent), 'a.ipynb', trans);
    form.set({ kind: 'every', every: 'soon', concurrency: '0', end: 'x' });
    expect(Object.keys(form.complaints).sort()).toEqual([
      'concurrency',
      'end',
      'every'
    ]);
    expect(await form.submit()).toBeNull();
    expect(sent).toEqual([]);
    form.dispose();
  });
});
