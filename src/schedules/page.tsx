import { editIcon, refreshIcon, runIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import '../../style/schedules.css';

import type { ISourceChange, Space } from '../api';
import { CommandIDs } from '../commands';
import { axisText, textOf } from '../settings/parametervalues';
import type { Execute, IPageOptions } from '../ui';
import {
  Action,
  Failure,
  Page,
  runtimeLabel,
  Unavailable,
  useAction,
  useModel,
  useTrans,
  Warning
} from '../ui';
import { Changes } from '../ui/changes';
import { Calendar } from './calendar';
import { ScheduleCommands } from './ids';
import { Ledger } from './ledger';
import type { ScheduleModel } from './model';
import type { IHook, ISchedule } from './types';
import { requestOf, sweepIn, triggerOf } from './types';
import {
  clusterSentence,
  dueLabel,
  durationText,
  keeperSentence,
  shiftSentence,
  timeIn
} from './words';

/** One schedule with its ledger, in the main area. */
export class SchedulePage extends Page<ScheduleModel> {
  constructor(model: ScheduleModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-schedules');
    this.title.label = options.trans.__('Schedule');
  }

  protected get name(): string | null {
    return this.model.view?.name ?? null;
  }

  protected content(execute: Execute): JSX.Element {
    return <ScheduleView model={this.model} execute={execute} />;
  }
}

function ScheduleView(props: {
  model: ScheduleModel;
  execute: Execute;
}): JSX.Element {
  const { execute } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const { view, error } = model;
  if (!view) {
    return (
      <Unavailable
        error={error}
        missing={trans.__('There is no such schedule.')}
      />
    );
  }
  return (
    <div className="jp-Convect-scheduleScroll">
      <Header model={model} view={view} execute={execute} />
      <Failure error={error} />
      <Facts view={view} />
      {triggerOf(view).call && <Hook key={view.id} model={model} />}
      <Calendar days={model.days} />
      <Ledger model={model} view={view} execute={execute} />
    </div>
  );
}

function Header(props: {
  model: ScheduleModel;
  view: ISchedule;
  execute: Execute;
}): JSX.Element {
  const { model, view, execute } = props;
  const trans = useTrans();
  const [failure, act] = useAction(() => model.refresh());
  const isPaused = view.paused !== null;
  const { id } = view;
  return (
    <header className="jp-Convect-header">
      <div className="jp-Convect-title">
        <h2 title={id}>{view.name}</h2>
        {isPaused && (
          <span className="jp-Convect-titleState">{trans.__('Paused')}</span>
        )}
        <div
          className="jp-Convect-actions"
          role="toolbar"
          aria-label={trans.__('Schedule')}
        >
          <Action
            icon={runIcon}
            wide
            label={trans.__('Run now')}
            onClick={act(async () => {
              const { run, sweep } = await model.api.runSchedule(id);
              if (run) {
                execute(CommandIDs.openRun, { run });
              } else {
                execute(CommandIDs.openSweep, { sweep });
              }
            })}
          />
          <Action
            label={isPaused ? trans.__('Resume') : trans.__('Pause')}
            onClick={act(() =>
              model.api.updateSchedule(id, { paused: !isPaused })
            )}
          />
          <Action
            icon={editIcon}
            wide
            label={trans.__('Edit…')}
            onClick={() => execute(ScheduleCommands.edit, { schedule: id })}
          />
          <Action
            icon={refreshIcon}
            wide
            label={trans.__('Backfill…')}
            title={trans.__('Run it for earlier due times, as a sweep')}
            disabled={view.is_sweep || !hasTimes(view)}
            onClick={() => execute(ScheduleCommands.backfill, { schedule: id })}
          />
          <Action
            label={trans.__('Notify…')}
            title={trans.__('Be told by mail or in a chat')}
            onClick={() => execute(ScheduleCommands.notify, { schedule: id })}
          />
          <Action
            label={trans.__('Remove…')}
            onClick={() => execute(ScheduleCommands.remove, { schedule: id })}
          />
        </div>
      </div>
      <div className="jp-Convect-facts">
        {view.path && (
          <button
            type="button"
            className="jp-Convect-link"
            onClick={() => execute(CommandIDs.openFile, { path: view.path })}
          >
            {view.path}
          </button>
        )}
        <span>{dueLabel(trans, view)}</span>
        <span>
          {view.kept_by === 'runtime'
            ? clusterSentence(
                trans,
                runtimeLabel(trans, view.runtime, view.runtime)
              )
            : keeperSentence(trans, model.keeper)}
        </span>
      </div>
      {view.changed.length > 0 && <Pinned model={model} view={view} />}
      <Failure error={failure} />
    </header>
  );
}

/** Whether a clock makes it due. */
function hasTimes({ clock }: ISchedule): boolean {
  return !!(clock.cron || clock.every);
}

/** The pinned files that have changed since, and how. */
function Pinned(props: { model: ScheduleModel; view: ISchedule }): JSX.Element {
  const { model, view } = props;
  const trans = useTrans();
  const [failure, act] = useAction(() => model.refresh());
  const [changes, setChanges] = React.useState<readonly ISourceChange[]>([]);
  const isShown = changes.length > 0;
  return (
    <>
      <Warning>
        {trans.__(
          'It runs the files as they were when it was pinned. Changed since: %1',
          view.changed.join(', ')
        )}{' '}
        <button
          type="button"
          className="jp-Convect-link"
          aria-expanded={isShown}
          onClick={act(async () =>
            setChanges(
              isShown ? [] : (await model.api.scheduleChanges(view.id)).changes
            )
          )}
        >
          {isShown
            ? trans.__('Hide the difference')
            : trans.__('Show the difference')}
        </button>{' '}
        <button
          type="button"
          className="jp-Convect-link"
          onClick={act(() =>
            model.api.updateSchedule(view.id, { pinned: true })
          )}
        >
          {trans.__('Update')}
        </button>
      </Warning>
      {isShown && (
        <Changes
          changes={changes}
          before={trans.__('Pinned')}
          lost={trans.__('The pinned version no longer exists.')}
        />
      )}
      <Failure error={failure} />
    </>
  );
}

function Facts({ view }: { view: ISchedule }): JSX.Element {
  const trans = useTrans();
  const zone = view.clock.zone ?? 'UTC';
  const overlap = {
    skip: trans.__('Skip the new one'),
    queue: trans.__('Wait'),
    stop: trans.__('Stop the old one')
  }[view.overlap];
  const missed = {
    none: trans.__('Nothing'),
    last: trans.__('The last'),
    all: trans.__('All of them')
  }[view.missed];
  const swept = sweepIn(view);
  const parameters = [
    ...Object.entries(requestOf(view).parameters ?? {}).map(
      ([name, value]) => [name, textOf(value)] as const
    ),
    ...Object.entries((swept?.space ?? {}) as Space).map(
      ([name, axis]) => [name, axisText(axis)] as const
    )
  ];
  return (
    <div className="jp-Convect-scheduleFacts">
      {(view.next.length > 0 || !view.trigger) && (
        <section>
          <h3>{trans.__('Next')}</h3>
          <ol>
            {view.next.map(due => (
              <li key={due}>{timeIn(due, zone)}</li>
            ))}
          </ol>
          {view.next.length === 0 && <p>{trans.__('Not due any more')}</p>}
          {view.shifts.map(shift => (
            <p key={shift.wall} className="jp-Convect-help">
              {shiftSentence(trans, shift, zone)}
            </p>
          ))}
        </section>
      )}
      <section>
        <h3>{trans.__('Rules')}</h3>
        <dl>
          <dt>{trans.__('While an earlier run goes on')}</dt>
          <dd>{overlap}</dd>
          <dt>{trans.__('Runs at the same time')}</dt>
          <dd>{view.concurrency}</dd>
          {hasTimes(view) && (
            <>
              <dt>{trans.__('Make up for what was missed')}</dt>
              <dd>
                {view.missed === 'none'
                  ? missed
                  : trans.__(
                      '%1, within %2',
                      missed,
                      durationText(view.deadline)
                    )}
              </dd>
            </>
          )}
          <dt>{trans.__('Files')}</dt>
          <dd>
            {view.pinned
              ? trans.__('Pinned')
              : trans.__('As they are at each run')}
          </dd>
        </dl>
      </section>
      {parameters.length > 0 && (
        <section>
          <h3>
            {swept
              ? trans.__('Parameters of the sweep')
              : trans.__('Parameters')}
          </h3>
          <dl>
            {parameters.map(([name, text]) => (
              <React.Fragment key={name}>
                <dt>{name}</dt>
                <dd>
                  <code>{text}</code>
                </dd>
              </React.Fragment>
            ))}
          </dl>
        </section>
      )}
    </div>
  );
}

/** How to call it; the token is shown when somebody asks for it. */
function Hook({ model }: { model: ScheduleModel }): JSX.Element {
  const trans = useTrans();
  const [hook, setHook] = React.useState<IHook | null>(null);
  const [failure, act] = useAction(() => model.refresh());
  const show = (asked: () => Promise<IHook>) =>
    act(async () => setHook(await asked()));
  const { api, id } = model;
  return (
    <div className="jp-Convect-scheduleFacts">
      <section>
        <h3>{trans.__('Calls')}</h3>
        {hook ? (
          <dl>
            <dt>{trans.__('Address')}</dt>
            <dd>
              <code>{new URL(hook.address, window.location.href).href}</code>
            </dd>
            <dt>{trans.__('Token')}</dt>
            <dd>
              <code>{hook.token}</code>
            </dd>
          </dl>
        ) : (
          <button
            type="button"
            className="jp-Convect-link"
            onClick={show(() => api.hook(id))}
          >
            {trans.__('Show the address and the token')}
          </button>
        )}
        {hook && (
          <>
            <p className="jp-Convect-help">
              {trans.__(
                'Send the token as Authorization: Bearer, or enter it as the secret of a webhook of GitHub, GitLab or Gitea.'
              )}
            </p>
            <button
              type="button"
              className="jp-Convect-link"
              onClick={show(() => api.renewToken(id))}
            >
              {trans.__('Replace the token')}
            </button>
          </>
        )}
        <Failure error={failure} />
      </section>
    </div>
  );
}
