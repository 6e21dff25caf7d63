import * as React from 'react';

import '../../../style/others.css';

import type { IOthersRun, IOthersRunView } from '../../api';
import type { IPlanViewFactory } from '../../tokens';
import type { IPageOptions } from '../../ui';
import {
  Ago,
  Duration,
  Failure,
  isLive,
  Page,
  StateIcon,
  stateLabel,
  translated,
  useModel,
  useTrans
} from '../../ui';
import { PlanGraph } from '../page/graph';
import { ValueTable } from '../page/values';
import { OthersModel } from './model';
import { planOf, statesOf } from './plan';

export { OthersModel };

export interface IOthersPageOptions extends IPageOptions {
  planViews: IPlanViewFactory | null;
}

/** Runs of a runtime that were made elsewhere, read only, in the main area. */
export class OthersPage extends Page<OthersModel> {
  constructor(
    model: OthersModel,
    private readonly others: IOthersPageOptions
  ) {
    super(model, others);
    this.addClass('jp-Convect-others');
  }

  protected get name(): string {
    const { displayName, runtime } = this.model;
    return this.others.trans.__('Runs in %1', displayName ?? runtime);
  }

  protected content(): JSX.Element {
    return <OthersView model={this.model} planViews={this.others.planViews} />;
  }
}

export function OthersView(props: {
  model: OthersModel;
  planViews: IPlanViewFactory | null;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const { runs, next, selected, view, error } = model;
  return (
    <>
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{trans.__('Runs in %1', model.displayName ?? model.runtime)}</h2>
        </div>
        <div className="jp-Convect-facts">
          {trans.__(
            'Created elsewhere: by the SDK, another tool or another person. They can be viewed here, and changed where they were created.'
          )}
        </div>
      </header>
      <Failure error={error} />
      {runs?.length === 0 && (
        <div className="jp-Convect-empty">
          {trans.__('There are no runs that were created elsewhere.')}
        </div>
      )}
      {runs && runs.length > 0 && (
        <div className="jp-Convect-othersBody">
          <div className="jp-Convect-othersList">
            {runs.map(run => (
              <RunButton
                key={run.id}
                run={run}
                isSelected={run.id === selected}
                onSelect={() => model.select(run.id)}
              />
            ))}
            {next !== null && (
              <button
                type="button"
                className="jp-Convect-link"
                onClick={() => void model.more()}
              >
                {trans.__('Show older runs')}
              </button>
            )}
          </div>
          {selected === null ? (
            <div className="jp-Convect-empty">
              {trans.__('Choose a run to see its graph and its parameters.')}
            </div>
          ) : (
            view && <RunDetail view={view} planViews={props.planViews} />
          )}
        </div>
      )}
    </>
  );
}

function RunButton(props: {
  run: IOthersRun;
  isSelected: boolean;
  onSelect: () => void;
}): JSX.Element {
  const { run, isSelected, onSelect } = props;
  return (
    <button
      type="button"
      className="jp-Convect-othersRun"
      aria-pressed={isSelected}
      data-others-run={run.id}
      onClick={onSelect}
    >
      <StateIcon state={run.state} />
      <span className="jp-Convect-othersName" title={run.name}>
        {run.name}
      </span>
      <span className="jp-Convect-othersNote">
        {run.made_by ?? ''} {run.created !== null && <Ago time={run.created} />}
      </span>
    </button>
  );
}

function RunDetail(props: {
  view: IOthersRunView;
  planViews: IPlanViewFactory | null;
}): JSX.Element {
  const { view, planViews } = props;
  const trans = useTrans();
  const [selected, setSelected] = React.useState<string | null>(null);
  const { page, state, created, ended } = view;
  const plan = React.useMemo(() => planOf(view), [view]);
  const states = React.useMemo(() => statesOf(view), [view]);
  return (
    <section className="jp-Convect-othersDetail" aria-label={view.name}>
      <div className="jp-Convect-title">
        <StateIcon state={state} />
        <h3 title={view.id}>{view.name}</h3>
        <span className="jp-Convect-titleState" data-state={state}>
          {stateLabel(trans, state)}
        </span>
      </div>
      <div className="jp-Convect-facts">
        {created !== null && (
          <Duration started={created} ended={ended} live={isLive(state)} />
        )}
        {view.reason && <span>{translated(view.reason, trans)}</span>}
        {page && (
          <a
            className="jp-Convect-link"
            href={page}
            target="_blank"
            rel="noopener noreferrer"
          >
            {trans.__('Open in Kubeflow Pipelines')}
          </a>
        )}
      </div>
      {planViews && view.steps.length > 0 && (
        <PlanGraph
          plan={plan}
          states={states}
          selected={selected}
          planViews={planViews}
          onSelect={setSelected}
        />
      )}
      <ul className="jp-Convect-othersSteps" aria-label={trans.__('Steps')}>
        {view.steps.map(step => (
          <li key={step.id} aria-current={step.id === selected}>
            <StateIcon state={step.state} />
            <span>{step.name}</span>
            <code>{step.image}</code>
          </li>
        ))}
      </ul>
      {view.steps.length === 0 && (
        <div className="jp-Convect-hint">
          {trans.__('The server does not tell what this run consists of.')}
        </div>
      )}
      <div className="jp-Convect-values">
        <ValueTable
          title={trans.__('Parameters')}
          values={view.parameters}
          empty={trans.__('It has none.')}
        />
      </div>
    </section>
  );
}
