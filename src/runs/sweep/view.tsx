import {
  addIcon,
  deleteIcon,
  downloadIcon,
  editIcon,
  folderIcon,
  linkIcon,
  notebookIcon,
  refreshIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import * as React from 'react';

import type { IRunSummary, ISweepView, State } from '../../api';
import { isAway, sentenceOf } from '../../api';
import { CommandIDs } from '../../commands';
import { curvesIcon } from '../../icons';
import type { Execute } from '../../ui';
import {
  Action,
  Ago,
  Check,
  Failure,
  formatParameters,
  goalLabel,
  isLive,
  SearchInput,
  Select,
  Unavailable,
  useAction,
  useKept,
  useModel,
  useTrans,
  Warning
} from '../../ui';
import { ServerBanner } from '../banner';
import { SweepTable } from './grid';
import type { SweepModel } from './model';
import { Plots } from './plots';
import { AddPoints } from './points';
import { csvOf, goalOf, labelOf } from './table';

/** The page of a sweep: what it is, its plots, its table. */
export function SweepView(props: {
  model: SweepModel;
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
        missing={trans.__('There is no such sweep.')}
      />
    );
  }
  const open = (run: string) => execute(CommandIDs.openRun, { run });
  return (
    <>
      <ServerBanner runs={model.runs} />
      {!!error && !isAway(error) && <Warning>{sentenceOf(error)}</Warning>}
      <SweepHeader model={model} view={view} execute={execute} />
      <Plots model={model} onOpen={open} />
      <TableBar model={model} execute={execute} />
      <SweepTable model={model} onOpen={open} />
    </>
  );
}

function SweepHeader(props: {
  model: SweepModel;
  view: ISweepView;
  execute: Execute;
}): JSX.Element {
  const { model, view, execute } = props;
  const trans = useTrans();
  const [adding, setAdding] = useKept('adding points', false);
  const count = (wanted: State[]) =>
    view.runs.filter(run => wanted.includes(run.state)).length;
  const live = view.runs.filter(run => isLive(run.state)).length;
  const failed = count(['failed', 'lost', 'cancelled']);
  const best = view.runs.find(({ id }) => id === model.best);
  const goal = goalOf(view.select)?.slice('m:'.length);
  const [failure, act] = useAction(() => model.refresh());
  return (
    <header className="jp-Convect-header">
      <div className="jp-Convect-title">
        <h2 title={view.id}>{view.name}</h2>
        <div
          className="jp-Convect-actions"
          role="toolbar"
          aria-label={trans.__('Sweep')}
        >
          {best && (
            <Action
              icon={notebookIcon}
              wide
              label={trans.__('Open the best')}
              onClick={() => execute(CommandIDs.openExecuted, { run: best.id })}
            />
          )}
          <Action
            icon={folderIcon}
            wide
            label={trans.__('Put the files of the best run into the project')}
            title={
              best
                ? undefined
                : trans.__('No run is marked as best: choose a metric.')
            }
            disabled={!best}
            onClick={() => execute(CommandIDs.putFiles, { run: best?.id })}
          />
          {live > 0 && (
            <Action
              icon={stopIcon}
              wide
              label={trans.__('Stop all')}
              onClick={act(() => model.api.stopSweep(model.id))}
            />
          )}
          {failed > 0 && live === 0 && (
            <Action
              icon={refreshIcon}
              wide
              label={trans.__('Run the failed again')}
              onClick={act(() => model.api.rerunSweep(model.id))}
            />
          )}
          {view.runs.length > 0 && (
            <Action
              icon={curvesIcon}
              label={trans.__('Open in TensorBoard')}
              onClick={() =>
                execute(CommandIDs.openTensorBoard, { sweep: view.id })
              }
            />
          )}
          <Action
            icon={addIcon}
            wide
            label={trans.__('Add points')}
            onClick={() => setAdding(!adding)}
          />
          <Action
            icon={editIcon}
            label={trans.__('Rename')}
            onClick={() => execute(CommandIDs.renameSweep, { sweep: view.id })}
          />
          <Action
            icon={linkIcon}
            label={trans.__('Copy link')}
            onClick={() => execute(CommandIDs.copyLink, { sweep: view.id })}
          />
          <Action
            icon={deleteIcon}
            label={trans.__('Delete')}
            disabled={live > 0}
            onClick={() => execute(CommandIDs.deleteSweep, { sweep: view.id })}
          />
        </div>
      </div>
      <div className="jp-Convect-facts">
        <span>
          {trans._n(
            '%2 of %1 run has ended',
            '%2 of %1 runs have ended',
            view.runs.length,
            view.runs.length - live
          )}
        </span>
        {failed > 0 && (
          <span className="jp-Convect-tag jp-mod-error">
            {trans.__('%1 did not succeed', failed)}
          </span>
        )}
        <Ago time={view.created} />
        <BestChoice
          model={model}
          view={view}
          onChoose={goal => act(() => model.markBest(goal))()}
        />
        {best && <span>{formatParameters(sweptOf(view, best))}</span>}
        {best && goal && (
          <strong>{formatParameters({ [goal]: best.metrics[goal] })}</strong>
        )}
      </div>
      <Failure error={failure} />
      {adding && <AddPoints model={model} onDone={() => setAdding(false)} />}
    </header>
  );
}

/** The values of a run that the sweep goes over. */
function sweptOf(view: ISweepView, run: IRunSummary): ReadonlyJSONObject {
  const swept = Object.keys(view.space ?? {});
  return Object.fromEntries(
    Object.entries(run.parameters).filter(([name]) => swept.includes(name))
  ) as ReadonlyJSONObject;
}

/** By which metric the best run is told; it can be chosen at any time. */
function BestChoice(props: {
  model: SweepModel;
  view: ISweepView;
  onChoose: (goal: string | null) => void;
}): JSX.Element | null {
  const { model, view, onChoose } = props;
  const trans = useTrans();
  const names = model.columns
    .filter(({ kind }) => kind === 'metric')
    .map(({ name }) => name);
  const goals = names.flatMap(name => [`max:${name}`, `min:${name}`]);
  if (view.select && !goals.includes(view.select)) {
    goals.unshift(view.select);
  }
  if (goals.length === 0) {
    return null;
  }
  return (
    <label className="jp-Convect-inline">
      {trans.__('Best')}
      <Select
        value={view.select ?? ''}
        options={[
          { value: '', label: trans.__('not marked') },
          ...goals.map(goal => ({ value: goal, label: goalLabel(goal, trans) }))
        ]}
        onChange={goal => onChoose(goal || null)}
      />
    </label>
  );
}

/** Have the browser keep a text as a file. */
function downloadText(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}

function TableBar(props: { model: SweepModel; execute: Execute }): JSX.Element {
  const { model, execute } = props;
  const trans = useTrans();
  return (
    <div className="jp-Convect-tablebar">
      <SearchInput
        placeholder={trans.__('Filter: text, lr>0.1, depth=3')}
        title={trans.__(
          'Words, and comparisons with =, !=, <, <=, > and >=, separated by spaces or commas. Names and texts with spaces go in double quotes.'
        )}
        label={trans.__('Filter the runs')}
        value={model.filter}
        onChange={text => model.setFilter(text)}
      />
      <span role="status">
        {trans._n('%1 run', '%1 runs', model.rows.length)}
        {model.unknownNames.length > 0 && (
          <span className="jp-Convect-tag jp-mod-error">
            {trans.__(
              'No run has a parameter or metric called %1',
              model.unknownNames.join(', ')
            )}
          </span>
        )}
      </span>
      {model.selection.size > 0 && (
        <>
          <Action
            label={trans.__('Compare %1 marked', model.selection.size)}
            onClick={() =>
              execute(CommandIDs.compareRuns, { runs: [...model.selection] })
            }
          />
          <Action
            label={trans.__('Clear')}
            onClick={() => model.clearSelection()}
          />
        </>
      )}
      <Action
        icon={downloadIcon}
        label={trans.__('Export as CSV')}
        onClick={() => {
          const text = csvOf(model.rows, model.shownColumns, trans);
          const name = `${model.view?.name ?? 'sweep'}.csv`;
          downloadText(name, text, 'text/csv');
        }}
      />
      <details
        className="jp-Convect-columns"
        onBlur={({ currentTarget, relatedTarget }) => {
          if (!currentTarget.contains(relatedTarget)) {
            currentTarget.open = false;
          }
        }}
        onKeyDown={({ currentTarget, key }) => {
          if (key === 'Escape') {
            currentTarget.open = false;
            currentTarget.querySelector('summary')?.focus();
          }
        }}
      >
        <summary>{trans.__('Columns')}</summary>
        <div tabIndex={-1}>
          {model.columns
            .filter(({ kind }) => kind !== 'state')
            .map(column => (
              <Check
                key={column.id}
                label={labelOf(column, trans)}
                checked={model.hasColumn(column.id)}
                onChange={() => model.toggleColumn(column.id)}
              />
            ))}
        </div>
      </details>
    </div>
  );
}
