import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { ConvectError, isUnreachable, sentenceOf } from '../../api';
import type { IPlanView, IPlanViewFactory } from '../../tokens';
import type { Execute } from '../../ui';
import { useModel, useTrans } from '../../ui';
import { Header } from './header';
import { ServerBanner } from '../banner';
import { GroupView } from './loopview';
import type { RunModel } from './model';
import { Steps } from './steps';
import type { OpenTerminal } from './step';
import { StepView } from './step';

/** The page of one run. */
export function RunPageView(props: {
  model: RunModel;
  planViews: IPlanViewFactory | null;
  openTerminal: OpenTerminal | null;
  execute: Execute;
}): JSX.Element {
  const { planViews, openTerminal, execute } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const { view, error, isDeleted } = model;
  if (!view) {
    return error ? <Unavailable error={error} /> : <></>;
  }
  const { step, group } = model;
  const selected = step?.id ?? group?.id ?? null;
  const { steps, groups = [] } = view.plan;
  const isSeveral =
    steps.length + groups.length > 1 || steps.some(each => each.for_each);
  const select = (id: string) => model.look({ step: id });
  return (
    <>
      {isDeleted && (
        <div
          className="jp-Convect-message"
          data-severity="warning"
          role="status"
        >
          {trans.__('This run has been deleted.')}
        </div>
      )}
      <ServerBanner runs={model.runs} />
      {!!error && !isDeleted && !isUnreachable(error) && (
        <div
          className="jp-Convect-message"
          data-severity="warning"
          role="status"
        >
          {sentenceOf(error)}
        </div>
      )}
      <Header
        view={view}
        step={step?.id ?? null}
        node={step?.node ?? step?.id ?? null}
        execute={execute}
      />
      <div className="jp-Convect-pageBody" data-several={isSeveral}>
        <div className="jp-Convect-overview">
          {planViews && isSeveral && (
            <PlanGraph model={model} planViews={planViews} onSelect={select} />
          )}
          <Steps
            view={view}
            open={model.openItem}
            selected={selected}
            onSelect={select}
          />
        </div>
        {group ? (
          <GroupView model={model} group={group} />
        ) : (
          <StepView
            model={model}
            openTerminal={openTerminal}
            execute={execute}
          />
        )}
      </div>
    </>
  );
}

function Unavailable({ error }: { error: unknown }): JSX.Element {
  const trans = useTrans();
  const text =
    error instanceof ConvectError && error.isMissing
      ? trans.__('There is no such run. It may have been deleted.')
      : sentenceOf(error);
  return (
    <div className="jp-Convect-empty" role="alert">
      {text}
    </div>
  );
}

/** The plan as a graph, drawn by the editor's canvas. */
function PlanGraph(props: {
  model: RunModel;
  planViews: IPlanViewFactory;
  onSelect: (step: string) => void;
}): JSX.Element {
  const { planViews } = props;
  const model = useModel(props.model);
  const place = React.useRef<HTMLDivElement>(null);
  const [graph, setGraph] = React.useState<IPlanView | null>(null);
  const onSelect = React.useRef(props.onSelect);
  React.useEffect(() => {
    onSelect.current = props.onSelect;
  });
  const plan = model.view?.plan;
  const digest = JSON.stringify(plan);

  React.useEffect(() => {
    const element = place.current;
    if (!plan || !element) {
      return;
    }
    let made: IPlanView | null = null;
    let gone = false;
    planViews
      .create(plan, { onSelect: step => onSelect.current(step) })
      .then(created => {
        if (gone) {
          created.widget.dispose();
          return;
        }
        made = created;
        Widget.attach(created.widget, element);
        setGraph(created);
      })
      .catch(console.error);
    return () => {
      gone = true;
      if (made && !made.widget.isDisposed) {
        Widget.detach(made.widget);
        made.widget.dispose();
      }
      setGraph(null);
    };
    // The plan of a run never changes, though each answer has a new copy.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [digest, planViews]);

  const { view } = model;
  const at = model.step ?? model.group;
  const selected = at?.node ?? at?.id ?? null;
  React.useEffect(() => {
    if (graph && view) {
      graph.update(view, selected);
    }
  }, [graph, view, selected]);

  return <div ref={place} className="jp-Convect-graph" />;
}
