import * as React from 'react';

import type { IAttemptKey, IPlanStep, IStep } from '../../api';
import { CommandIDs } from '../../commands';
import type { Execute } from '../../ui';
import {
  lazy,
  Select,
  stateLabel,
  Tabs,
  translated,
  useKeptScroll,
  useModel,
  useTrans
} from '../../ui';
import { Cells } from './cells';
import { Details } from './details';
import type { EventsModel, IStepStory } from './events';
import { Files } from './files';
import { LogView, useFollowing } from './logview';
import { Metrics } from './metrics';
import type { RunModel, Tab } from './model';
import { followsJob } from './ranks';
import type { OpenTerminal } from './shellbutton';
import { ShellButton } from './shellbutton';
import { itemLabel } from './steps';
import { Values } from './values';

const Replicas = lazy(() => import('./replicas'));

/** All that one step has to show. */
export function StepView(props: {
  model: RunModel;
  /** Null when there are no terminals. */
  openTerminal: OpenTerminal | null;
  execute: Execute;
}): JSX.Element | null {
  const model = useModel(props.model);
  const { openTerminal, execute } = props;
  const trans = useTrans();
  const takeKeyboard = React.useCallback(
    (button: HTMLElement | null) => {
      if (button && model.takeKeyboard()) {
        button.focus();
      }
    },
    [model]
  );
  const { view, step, key } = model;
  const node = step?.node ?? step?.id;
  const planned = view?.plan.steps.find(({ id }) => id === node);
  if (!view || !step || !planned) {
    return null;
  }
  const tabs: { name: Tab; label: string }[] = [
    { name: 'log', label: trans.__('Log') },
    { name: 'values', label: trans.__('Values') },
    { name: 'metrics', label: trans.__('Metrics') },
    { name: 'files', label: trans.__('Files') },
    { name: 'details', label: trans.__('Details') }
  ];
  if (planned.distributed || followsJob(planned.command)) {
    tabs.unshift({ name: 'replicas', label: trans.__('Processes') });
  }
  if (planned.kind === 'notebook') {
    tabs.unshift({ name: 'cells', label: trans.__('Cells') });
  }
  const chosen = tabs.find(({ name }) => name === model.tab) ?? tabs[0];
  return (
    <section className="jp-Convect-stepView" aria-label={planned.name}>
      <div className="jp-Convect-stepBar">
        <Tabs
          label={planned.name}
          tabs={tabs}
          selected={chosen.name}
          onSelect={tab => model.look({ tab })}
        />
        <span className="jp-Convect-inline">
          {openTerminal && step.state === 'running' && (
            <ShellButton
              model={model}
              step={step.id}
              openTerminal={openTerminal}
            />
          )}
          <Attempts model={model} step={step} />
        </span>
      </div>
      {model.openItem && (
        <p className="jp-Convect-itemBar">
          <button
            ref={takeKeyboard}
            type="button"
            className="jp-Convect-link"
            onClick={() => model.lookAtItems()}
          >
            {trans.__('All items')}
          </button>{' '}
          › {itemLabel(model.openItem.item, trans)} › {planned.name}
        </p>
      )}
      {step.notices?.map(notice => (
        <p
          key={notice}
          className="jp-Convect-message"
          data-severity="warning"
          role="status"
        >
          {translated(notice, trans)}
        </p>
      ))}
      <TabPanel key={`${step.id} ${chosen.name}`} name={chosen.label}>
        <TabBody
          tab={chosen.name}
          model={model}
          planned={planned}
          step={step}
          attempt={key}
          execute={execute}
          openTerminal={
            followsJob(planned.command) || step.state !== 'running'
              ? null
              : openTerminal
          }
        />
      </TabPanel>
    </section>
  );
}

function TabPanel(props: {
  name: string;
  children: React.ReactNode;
}): JSX.Element {
  return (
    <div
      ref={useKeptScroll(`place in ${props.name}`)}
      className="jp-Convect-stepBody"
      role="tabpanel"
      aria-label={props.name}
    >
      {props.children}
    </div>
  );
}

function TabBody(props: {
  tab: Tab;
  model: RunModel;
  planned: IPlanStep;
  step: IStep;
  attempt: IAttemptKey | null;
  openTerminal: OpenTerminal | null;
  execute: Execute;
}): JSX.Element | null {
  const { tab, model, planned, step, attempt, execute } = props;
  const { view, api } = model;
  const trans = useTrans();
  if (!view) {
    return null;
  }
  if (tab === 'details') {
    const tried = step.attempts.find(a => a.attempt === model.attempt);
    return (
      <Details
        api={api}
        attemptKey={attempt}
        view={view}
        planned={planned}
        step={step}
        attempt={tried}
      />
    );
  }
  if (tab === 'values') {
    return <Values view={view} planned={planned} step={step} />;
  }
  if (!attempt) {
    return (
      <div className="jp-Convect-hint">
        {step.reason
          ? translated(step.reason, trans)
          : trans.__('It has not begun.')}
      </div>
    );
  }
  const { run, step: id, attempt: number } = attempt;
  switch (tab) {
    case 'replicas':
      return (
        <React.Suspense fallback={null}>
          <Replicas
            key={`${id} ${number}`}
            model={model}
            openTerminal={props.openTerminal}
          />
        </React.Suspense>
      );
    case 'log':
      return <LogView key={`${id} ${number}`} model={model} />;
    case 'files':
      return <Files api={api} view={view} step={id} execute={execute} />;
    case 'cells':
    case 'metrics':
      return (
        <WithEvents key={`${id} ${number}`} model={model}>
          {story =>
            tab === 'metrics' ? (
              <Metrics story={story} last={step.metrics} />
            ) : (
              <Cells
                api={api}
                attempt={attempt}
                story={story}
                state={step.state}
                onOpen={cell =>
                  execute(CommandIDs.openExecuted, {
                    run,
                    step: id,
                    attempt: number,
                    cell
                  })
                }
              />
            )
          }
        </WithEvents>
      );
  }
}

/** Follows the events of an attempt while they are seen. */
function WithEvents(props: {
  model: RunModel;
  children: (story: IStepStory) => JSX.Element;
}): JSX.Element | null {
  const { events, isShown } = props.model;
  useFollowing(events, isShown);
  return events && <Following events={events}>{props.children}</Following>;
}

function Following(props: {
  events: EventsModel;
  children: (story: IStepStory) => JSX.Element;
}): JSX.Element {
  return props.children(useModel(props.events).story);
}

function Attempts(props: { model: RunModel; step: IStep }): JSX.Element | null {
  const { model, step } = props;
  const trans = useTrans();
  if (step.attempts.length < 2) {
    return null;
  }
  return (
    <Select
      label={trans.__('Attempt')}
      value={String(model.attempt)}
      options={step.attempts.map(({ attempt, state }) => ({
        value: String(attempt),
        label: trans.__('Attempt %1: %2', attempt, stateLabel(trans, state))
      }))}
      onChange={attempt => model.look({ attempt: Number(attempt) })}
    />
  );
}
