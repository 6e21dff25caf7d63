import * as React from 'react';

import { isAway, sentenceOf } from '../../api';
import type { IPlanViewFactory } from '../../tokens';
import type { Execute } from '../../ui';
import { Unavailable, useModel, useTrans, Warning } from '../../ui';
import { PlanGraph } from './graph';
import { Header } from './header';
import { ServerBanner } from '../banner';
import { GroupView } from './loopview';
import type { RunModel } from './model';
import { Steps } from './steps';
import type { OpenTerminal } from './shellbutton';
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
    return (
      <Unavailable
        error={error}
        missing={trans.__('There is no such run. It may have been deleted.')}
      />
    );
  }
  const { step, group } = model;
  const drawn = step ?? group;
  const selected = drawn?.id ?? null;
  const { steps, groups = [] } = view.plan;
  const isSeveral =
    steps.length + groups.length > 1 || steps.some(each => each.for_each);
  const select = (id: string) => model.look({ step: id });
  return (
    <>
      {isDeleted && <Warning>{trans.__('This run has been deleted.')}</Warning>}
      <ServerBanner runs={model.runs} />
      {!!error && !isDeleted && !isAway(error) && (
        <Warning>{sentenceOf(error)}</Warning>
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
            <PlanGraph
              plan={view.plan}
              states={view}
              selected={drawn?.node ?? drawn?.id ?? null}
              planViews={planViews}
              onSelect={select}
            />
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
