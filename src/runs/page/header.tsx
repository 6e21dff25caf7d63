import {
  deleteIcon,
  downloadIcon,
  duplicateIcon,
  editIcon,
  linkIcon,
  notebookIcon,
  refreshIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IRunView } from '../../api';
import { CommandIDs } from '../../commands';
import { compareIcon, curvesIcon, pinIcon } from '../../icons';
import type { Execute } from '../../ui';
import {
  Action,
  Ago,
  Duration,
  formatParameters,
  hangs,
  isBad,
  isLive,
  momentOf,
  reasonOf,
  runtimeLabel,
  StateIcon,
  stateLabel,
  translated,
  useTrans
} from '../../ui';
import { PIN } from '../context';
import { notPut } from '../made';

/** What a run is, how it is, and what can be done with it. */
export function Header(props: {
  view: IRunView;
  step: string | null;
  /** The step of the plan that it is. */
  node: string | null;
  execute: Execute;
}): JSX.Element {
  const { view, step, node, execute } = props;
  const trans = useTrans();
  const live = isLive(view.state);
  const parameters = formatParameters(view.parameters);
  const reason = reasonOf(view, trans);
  const hanging = Object.values(view.steps).find(each =>
    hangs(each.state, each.reason)
  );
  const left = notPut(view.files?.kept ?? {}, trans);
  return (
    <header className="jp-Convect-header">
      <div className="jp-Convect-title">
        <StateIcon state={view.state} reason={hanging?.reason} />
        <h2 title={view.id}>{view.name}</h2>
        <span
          className="jp-Convect-titleState"
          data-state={view.state}
          data-hangs={hanging && live ? '' : undefined}
        >
          {view.stopping && live
            ? trans.__('Stopping')
            : stateLabel(trans, view.state)}
        </span>
        <Actions
          view={view}
          step={step}
          node={node}
          live={live}
          execute={execute}
        />
      </div>
      <div className="jp-Convect-facts">
        {view.path && (
          <button
            className="jp-Convect-link"
            title={trans.__('Open the source')}
            onClick={() =>
              execute('docmanager:open', { path: view.path as string })
            }
          >
            {view.path}
          </button>
        )}
        {view.page ? (
          <a
            className="jp-Convect-link"
            href={view.page}
            target="_blank"
            rel="noopener noreferrer"
            title={trans.__('Open the page that the runtime has for this run')}
          >
            {runtimeLabel(trans, view.runtime)}
          </a>
        ) : (
          <span>{runtimeLabel(trans, view.runtime)}</span>
        )}
        <Ago time={momentOf(view)} />
        <Duration started={view.started} ended={view.ended} live={live} />
        {view.user && <span>{view.user}</span>}
        {view.sweep && (
          <button
            className="jp-Convect-link"
            onClick={() => execute(CommandIDs.openSweep, { sweep: view.sweep })}
          >
            {trans.__('Sweep')}
          </button>
        )}
        {parameters && <code title={parameters}>{parameters}</code>}
      </div>
      <Words view={view} />
      {reason && (
        <p
          className="jp-Convect-message"
          data-severity={isBad(view.state) ? 'error' : undefined}
        >
          {reason}
        </p>
      )}
      {hanging?.reason && (
        <p className="jp-Convect-message" data-severity="warning">
          {translated(hanging.reason, trans)}
        </p>
      )}
      {left && <p className="jp-Convect-message">{left}</p>}
    </header>
  );
}

/** What people wrote about it. */
function Words({ view }: { view: IRunView }): JSX.Element | null {
  const labels = Object.entries(view.labels).filter(([key]) => key !== PIN);
  if (labels.length === 0 && !view.note) {
    return null;
  }
  return (
    <div className="jp-Convect-facts">
      {labels.map(([key, value]) => (
        <span key={key} className="jp-Convect-tag">
          {value ? `${key}=${value}` : key}
        </span>
      ))}
      {view.note && <span className="jp-Convect-runNote">{view.note}</span>}
    </div>
  );
}

function Actions(props: {
  view: IRunView;
  step: string | null;
  node: string | null;
  live: boolean;
  execute: Execute;
}): JSX.Element {
  const { view, step, node, live, execute } = props;
  const trans = useTrans();
  const run = view.id;
  const several = view.plan.steps.length > 1;
  const bad = Object.values(view.steps).some(({ state }) =>
    ['failed', 'cancelled', 'skipped', 'lost'].includes(state)
  );
  const kind = view.plan.steps.find(({ id }) => id === node)?.kind;
  return (
    <div
      className="jp-Convect-actions"
      role="toolbar"
      aria-label={trans.__('Run')}
    >
      {kind === 'notebook' && (
        <Action
          icon={notebookIcon}
          label={trans.__('Executed notebook')}
          wide
          onClick={() => execute(CommandIDs.openExecuted, { run, step })}
        />
      )}
      {/* It keeps its place, lest a second click meets another button. */}
      <Action
        icon={stopIcon}
        label={trans.__('Stop')}
        wide
        disabled={!live || view.stopping}
        onClick={() => execute(CommandIDs.stopRun, { run })}
      />
      <Action
        icon={refreshIcon}
        label={trans.__('Run again')}
        title={trans.__(
          'Run it again; asks which version when files have changed since'
        )}
        wide
        onClick={() => execute(CommandIDs.rerun, { run })}
      />
      {several && bad && !live && (
        <Action
          label={trans.__('Run failed steps again')}
          title={trans.__(
            'Run again what did not succeed; asks which version when files have changed since'
          )}
          wide
          onClick={() => execute(CommandIDs.rerun, { run, mode: 'failed' })}
        />
      )}
      {several && node && !live && (
        <Action
          label={trans.__('Run again from %1', node)}
          title={trans.__(
            'Run again from the selected step on; asks which version when files have changed since'
          )}
          wide
          onClick={() => execute(CommandIDs.rerun, { run, mode: 'from', node })}
        />
      )}
      <Action
        icon={pinIcon}
        label={PIN in view.labels ? trans.__('Unpin') : trans.__('Pin')}
        onClick={() => execute(CommandIDs.pinRun, { run })}
      />
      <Action
        icon={editIcon}
        label={trans.__('Name, labels and note')}
        onClick={() => execute(CommandIDs.editRun, { run })}
      />
      <Action
        icon={duplicateIcon}
        label={trans.__('Change and run again')}
        title={trans.__('Change and run again, with today’s files')}
        onClick={() => execute(CommandIDs.cloneRun, { run })}
      />
      <Action
        icon={compareIcon}
        label={trans.__('Compare with other runs')}
        onClick={() => execute(CommandIDs.compareRuns, { runs: [run] })}
      />
      <Action
        icon={curvesIcon}
        label={trans.__('Open in TensorBoard')}
        onClick={() => execute(CommandIDs.openTensorBoard, { runs: [run] })}
      />
      <Action
        icon={downloadIcon}
        label={trans.__('Download everything')}
        onClick={() => execute(CommandIDs.downloadRun, { run })}
      />
      <Action
        icon={linkIcon}
        label={trans.__('Copy link')}
        onClick={() => execute(CommandIDs.copyLink, { run })}
      />
      <Action
        icon={deleteIcon}
        label={trans.__('Delete')}
        disabled={live}
        onClick={() => execute(CommandIDs.deleteRun, { run })}
      />
    </div>
  );
}
