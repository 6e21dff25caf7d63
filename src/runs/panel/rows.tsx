import {
  Button,
  caretDownIcon,
  caretRightIcon,
  deleteIcon,
  refreshIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IRunSummary, ISweepSummary, State } from '../../api';
import { CommandIDs } from '../../commands';
import { pinIcon } from '../../icons';
import type { Execute } from '../../ui';
import {
  Ago,
  Duration,
  formatParameters,
  isLive,
  momentOf,
  reasonOf,
  StateIcon,
  useTrans
} from '../../ui';
import { PIN } from '../context';

/** A run in two lines: what it is and how it is, then what it was given or why it waits. */
export const RunRow = React.memo(function RunRow(props: {
  run: IRunSummary;
  nested: boolean;
  execute: Execute;
}): JSX.Element {
  const { run, nested, execute } = props;
  const trans = useTrans();
  const live = isLive(run.state);
  return (
    <>
      <StateIcon state={run.state} />
      <span className="jp-Convect-rowBody">
        <span className="jp-Convect-rowLine">
          <span className="jp-Convect-rowName" title={run.path ?? run.name}>
            {run.name}
          </span>
          {PIN in run.labels && (
            <pinIcon.react
              tag="span"
              className="jp-Convect-pin"
              title={trans.__('Pinned')}
            />
          )}
          <span className="jp-Convect-rowTime">
            {live && run.started ? (
              <Duration started={run.started} ended={run.ended} live />
            ) : (
              <Ago time={momentOf(run)} />
            )}
          </span>
        </span>
        <span className="jp-Convect-rowLine">
          <RunDetail run={run} nested={nested} />
        </span>
      </span>
      <RowActions run={run} live={live} execute={execute} />
      {live && run.state === 'running' && (
        <span
          className="jp-Convect-rowProgress"
          style={{ width: `${Math.round(run.progress * 100)}%` }}
        />
      )}
    </>
  );
});

function RunDetail(props: { run: IRunSummary; nested: boolean }): JSX.Element {
  const { run, nested } = props;
  const trans = useTrans();
  const parameters = formatParameters(run.parameters);
  const said = run.state === 'succeeded' ? null : reasonOf(run, trans);
  const text = said ?? (parameters || (nested ? '' : (run.path ?? '')));
  const label = said && parameters ? `${said}\n${parameters}` : text;
  return (
    <>
      <span className="jp-Convect-rowDetail" title={label}>
        {text}
      </span>
      {run.runtime !== 'local' && (
        <span className="jp-Convect-tag">{run.runtime}</span>
      )}
      {!isLive(run.state) && (
        <Duration started={run.started} ended={run.ended} live={false} />
      )}
    </>
  );
}

function RowActions(props: {
  run: IRunSummary;
  live: boolean;
  execute: Execute;
}): JSX.Element {
  const { run, live, execute } = props;
  const trans = useTrans();
  return (
    <span className="jp-Convect-rowActions">
      {live ? (
        <RowButton
          label={trans.__('Stop %1', run.name)}
          icon={stopIcon}
          onClick={() => execute(CommandIDs.stopRun, { run: run.id })}
        />
      ) : (
        <RowButton
          label={trans.__('Run %1 again', run.name)}
          icon={refreshIcon}
          onClick={() => execute(CommandIDs.rerun, { run: run.id })}
        />
      )}
    </span>
  );
}

function RowButton(props: {
  label: string;
  icon: typeof stopIcon;
  onClick: () => void;
}): JSX.Element {
  const { label, icon, onClick } = props;
  return (
    <Button
      minimal
      small
      tabIndex={-1}
      title={label}
      aria-label={label}
      onClick={event => {
        event.stopPropagation();
        onClick();
      }}
    >
      <icon.react tag="span" />
    </Button>
  );
}

/** A sweep in two lines, with how many of its runs are done. */
export function SweepRow(props: {
  sweep: ISweepSummary;
  expanded: boolean;
  onToggle: () => void;
  execute: Execute;
}): JSX.Element {
  const { sweep, expanded, onToggle, execute } = props;
  const trans = useTrans();
  const { counts } = sweep;
  const count = (states: State[]) =>
    states.reduce((sum, state) => sum + (counts[state] ?? 0), 0);
  const live = count(['waiting', 'queued', 'starting', 'running']);
  const failed = count(['failed', 'lost']);
  const done = sweep.total - live;
  const Caret = expanded ? caretDownIcon : caretRightIcon;
  return (
    <>
      <span
        className="jp-Convect-rowCaret"
        title={trans.__('Runs of %1', sweep.name)}
        onClick={event => {
          event.stopPropagation();
          onToggle();
        }}
      >
        <Caret.react tag="span" />
      </span>
      <span className="jp-Convect-rowBody">
        <span className="jp-Convect-rowLine">
          <span className="jp-Convect-rowName">{sweep.name}</span>
          <span className="jp-Convect-rowTime">
            <Ago time={sweep.created} />
          </span>
        </span>
        <span className="jp-Convect-rowLine">
          <StateIcon state={sweep.state} />
          <span className="jp-Convect-rowDetail">
            {trans._n('%2 of %1 run', '%2 of %1 runs', sweep.total, done)}
          </span>
          {failed > 0 && (
            <span className="jp-Convect-tag jp-mod-error">
              {trans.__('%1 failed', failed)}
            </span>
          )}
        </span>
      </span>
      <span className="jp-Convect-rowActions">
        {live > 0 ? (
          <RowButton
            label={trans.__('Stop %1', sweep.name)}
            icon={stopIcon}
            onClick={() => execute(CommandIDs.stopSweep, { sweep: sweep.id })}
          />
        ) : (
          <RowButton
            label={trans.__('Delete %1', sweep.name)}
            icon={deleteIcon}
            onClick={() => execute(CommandIDs.deleteSweep, { sweep: sweep.id })}
          />
        )}
      </span>
      {live > 0 && (
        <span
          className="jp-Convect-rowProgress"
          style={{ width: `${Math.round((done / sweep.total) * 100)}%` }}
        />
      )}
    </>
  );
}
