import * as React from 'react';

import '../../style/cluster.css';

import type { Execute, IPageOptions } from '../ui';
import {
  Failure,
  Page,
  runtimeLabel,
  translated,
  useModel,
  useTrans
} from '../ui';
import { Gpus } from './gpus';
import { Holders } from './holders';
import type { ClusterModel, IRuntimeState } from './model';
import { Nodes } from './nodes';
import { Offers } from './offers';
import { Queues } from './queues';
import { Quotas } from './quotas';

/** What there is, what is mine, and what could start now, in the main area. */
export class ClusterPage extends Page<ClusterModel> {
  constructor(model: ClusterModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-cluster');
    this.title.label = options.trans.__('Cluster');
  }

  protected get name(): string | null {
    return null;
  }

  protected content(execute: Execute): JSX.Element {
    return <Cluster model={this.model} execute={execute} />;
  }
}

function Cluster(props: {
  model: ClusterModel;
  execute: Execute;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  return (
    <>
      <Failure error={model.error} />
      {model.runtimes?.filter(hasAnswered).map(state => (
        <Runtime key={state.name} state={state} {...props} />
      ))}
      {!model.error && !model.runtimes?.every(hasAnswered) && (
        <div className="jp-Convect-hint" aria-busy>
          {trans.__('Looking at it…')}
        </div>
      )}
    </>
  );
}

/** Until then nobody knows whether it is one of the places that this page is about. */
function hasAnswered({ overview, problem }: IRuntimeState): boolean {
  return overview !== null || problem !== null;
}

const Runtime = React.memo(function Runtime(props: {
  state: IRuntimeState;
  model: ClusterModel;
  execute: Execute;
}): JSX.Element {
  const { state, model, execute } = props;
  const { overview, problem, name } = state;
  const trans = useTrans();
  // One that cannot be used has told no name of its own.
  const named = state.displayName === name ? undefined : state.displayName;
  const label = runtimeLabel(trans, name, named);
  return (
    <section
      className="jp-Convect-runtime"
      aria-label={label}
      data-runtime={name}
    >
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{label}</h2>
          {overview?.namespace && (
            <span className="jp-Convect-titleState">
              {trans.__('namespace %1', overview.namespace)}
            </span>
          )}
        </div>
      </header>
      {problem !== null && (
        <div
          className="jp-Convect-message"
          data-severity={overview ? 'warning' : 'info'}
          role="status"
        >
          {translated(problem, trans)}
          {overview && ` ${trans.__('What is shown may be old.')}`}
        </div>
      )}
      {overview && (
        <div className="jp-Convect-subjects">
          {overview.reading && (
            <div className="jp-Convect-message" role="status">
              {trans.__(
                'The pods of the cluster are being read: what is free is not known yet.'
              )}
            </div>
          )}
          {overview.notes.map(note => (
            <div key={note} className="jp-Convect-message" role="status">
              {translated(note, trans)}
            </div>
          ))}
          <Offers runtime={name} overview={overview} execute={execute} />
          <Gpus gpus={overview.gpus ?? []} />
          <Nodes runtime={name} overview={overview} />
          <Quotas overview={overview} />
          <Queues overview={overview} execute={execute} />
          <Holders
            runtime={name}
            overview={overview}
            model={model}
            execute={execute}
          />
        </div>
      )}
    </section>
  );
});
