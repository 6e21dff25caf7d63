import * as React from 'react';

import '../../style/schedules.css';

import type { Execute, IPageOptions } from '../ui';
import { Action, Failure, Page, useModel, useTrans } from '../ui';
import { ScheduleCommands } from './ids';
import { Outcome } from './ledger';
import type { SchedulesModel } from './model';
import type { IScheduleSummary } from './types';
import { lastOf } from './types';
import { dueLabel, keeperSentence, timeIn } from './words';

/** All schedules, in the main area. */
export class SchedulesPage extends Page<SchedulesModel> {
  constructor(model: SchedulesModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-schedules');
    this.title.label = options.trans.__('Schedules');
  }

  protected get name(): string | null {
    return null;
  }

  protected content(execute: Execute): JSX.Element {
    return <ScheduleList model={this.model} execute={execute} />;
  }
}

function ScheduleList(props: {
  model: SchedulesModel;
  execute: Execute;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const { schedules, keeper, error } = model;
  if (!schedules) {
    return <Failure error={error} />;
  }
  if (schedules.length === 0) {
    return (
      <div className="jp-Convect-empty">
        <h3>{trans.__('No schedules yet')}</h3>
        <p>
          {trans.__(
            'To run a notebook, script or pipeline again and again, choose Schedule… in its context menu in the file browser, or in the Run menu.'
          )}
        </p>
        <Action
          label={trans.__('Notifications')}
          onClick={() => props.execute(ScheduleCommands.notifications, {})}
        />
      </div>
    );
  }
  return (
    <>
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{trans.__('Schedules')}</h2>
          <div className="jp-Convect-actions">
            <Action
              label={trans.__('Notifications')}
              onClick={() => props.execute(ScheduleCommands.notifications, {})}
            />
          </div>
        </div>
        <div className="jp-Convect-facts">{keeperSentence(trans, keeper)}</div>
      </header>
      <Failure error={error} />
      <div className="jp-Convect-scheduleScroll">
        <table className="jp-Convect-scheduleTable">
          <thead>
            <tr>
              <th>{trans.__('Name')}</th>
              <th>{trans.__('File')}</th>
              <th>{trans.__('Runs')}</th>
              <th>{trans.__('Next')}</th>
              <th>{trans.__('Last')}</th>
            </tr>
          </thead>
          <tbody>
            {schedules.map(schedule => (
              <ScheduleRow
                key={schedule.id}
                schedule={schedule}
                execute={props.execute}
              />
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function ScheduleRow(props: {
  schedule: IScheduleSummary;
  execute: Execute;
}): JSX.Element {
  const { schedule, execute } = props;
  const trans = useTrans();
  const { clock } = schedule;
  const last = lastOf(schedule);
  return (
    <tr data-schedule={schedule.id}>
      <td>
        <button
          type="button"
          className="jp-Convect-link"
          onClick={() =>
            execute(ScheduleCommands.open, { schedule: schedule.id })
          }
        >
          {schedule.name}
        </button>
      </td>
      <td title={schedule.path ?? ''}>{schedule.path}</td>
      <td>{dueLabel(trans, schedule)}</td>
      <td>
        {schedule.paused !== null
          ? trans.__('Paused')
          : schedule.due !== null
            ? timeIn(schedule.due, clock.zone)
            : schedule.trigger
              ? ''
              : trans.__('Not due any more')}
      </td>
      <td>{last && <Outcome line={last} zone={clock.zone} isTimed />}</td>
    </tr>
  );
}
