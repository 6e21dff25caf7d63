import * as React from 'react';

import type { State } from '../api';
import { CommandIDs } from '../commands';
import type { Execute } from '../ui';
import {
  Failure,
  StateIcon,
  stateLabel,
  translated,
  useAction,
  useTrans
} from '../ui';
import type { ScheduleModel } from './model';
import type { ILedgerLine, ISchedule } from './types';
import { causeOf, outcomeLabel, timeIn } from './words';

/** What became of a due time, as a picture and a word. */
export function Outcome(props: {
  line: ILedgerLine;
  zone?: string;
  isTimed?: boolean;
}): JSX.Element {
  const { line, zone, isTimed } = props;
  const trans = useTrans();
  const isRun = line.outcome === 'ran' && line.state !== null;
  const state = isRun && line.state !== 'deleted' ? line.state : null;
  const label = state
    ? stateLabel(trans, state as State)
    : isRun
      ? trans.__('Ran; the run was deleted')
      : outcomeLabel(trans, line.outcome);
  return (
    <span className="jp-Convect-outcome" data-outcome={line.outcome}>
      {state ? (
        <StateIcon state={state as State} />
      ) : (
        <span className="jp-Convect-outcomeMark" aria-hidden />
      )}
      {isTimed ? `${label}, ${timeIn(line.due, zone)}` : label}
    </span>
  );
}

/** What became of each due time, the latest first. */
export function Ledger(props: {
  model: ScheduleModel;
  view: ISchedule;
  execute: Execute;
}): JSX.Element {
  const { model, view, execute } = props;
  const trans = useTrans();
  const [failure, act] = useAction(() => model.refresh());
  const zone = view.clock.zone ?? 'UTC';
  const open = (run: string) =>
    view.is_sweep
      ? execute(CommandIDs.openSweep, { sweep: run })
      : execute(CommandIDs.openRun, { run });
  if (model.lines.length === 0) {
    return (
      <p className="jp-Convect-scheduleFacts">
        {trans.__('Nothing was due so far.')}
      </p>
    );
  }
  return (
    <section className="jp-Convect-ledger">
      <h3>{trans.__('Due times')}</h3>
      <Failure error={failure} />
      <table className="jp-Convect-scheduleTable">
        <thead>
          <tr>
            <th>{trans.__('Due')}</th>
            <th>{trans.__('Outcome')}</th>
            <th>{trans.__('Reason')}</th>
            <th />
          </tr>
        </thead>
        <tbody>
          {model.lines.map(line => (
            <tr key={line.due} data-outcome={line.outcome}>
              <td>{timeIn(line.due, zone)}</td>
              <td>
                <Outcome line={line} />
              </td>
              <td>{reasonOf(line)}</td>
              <td className="jp-Convect-lineActions">
                {line.run && line.state !== 'deleted' && (
                  <button
                    type="button"
                    className="jp-Convect-link"
                    onClick={() => open(String(line.run))}
                  >
                    {trans.__('Open')}
                  </button>
                )}
                {line.asked.map(({ run, state }) => (
                  <button
                    key={run}
                    type="button"
                    className="jp-Convect-link"
                    disabled={state === 'deleted'}
                    onClick={() => open(run)}
                  >
                    {trans.__('Open what was run later')}
                  </button>
                ))}
                <button
                  type="button"
                  className="jp-Convect-link"
                  onClick={act(() =>
                    model.api.runSchedule(view.id, { due: line.due })
                  )}
                >
                  {trans.__('Run now')}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {model.hasMore && (
        <button
          type="button"
          className="jp-Convect-link"
          onClick={act(() => model.more())}
        >
          {trans.__('Show more')}
        </button>
      )}
    </section>
  );

  function reasonOf(line: ILedgerLine): string {
    if (line.gone) {
      const [begin, end] = line.gone;
      return trans.__(
        'Nobody kept the clock from %1 to %2.',
        timeIn(begin, zone),
        timeIn(end, zone)
      );
    }
    const reason = line.reason ? translated(line.reason, trans) : '';
    return [causeOf(trans, line), reason].filter(Boolean).join(': ');
  }
}
