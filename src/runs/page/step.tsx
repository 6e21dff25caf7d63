import { HTMLSelect, terminalIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type {
  ConvectApi,
  IAbout,
  IAttemptKey,
  IPlanStep,
  IStep
} from '../../api';
import { CommandIDs } from '../../commands';
import type { Execute } from '../../ui';
import { stateLabel, Tabs, translated, useModel, useTrans } from '../../ui';
import { Cells } from './cells';
import { Details } from './details';
import { EventsModel } from './events';
import { Files } from './files';
import { Action } from './header';
import { LogView } from './logview';
import { Metrics } from './metrics';
import type { RunModel, Tab } from './model';
import { Values } from './values';

/** Opens a terminal that executes these words. */
export type OpenTerminal = (words: readonly string[]) => void;

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
  const { view, step, key } = model;
  const planned = view?.plan.steps.find(({ id }) => id === step?.id);
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
  if (planned.kind === 'notebook') {
    tabs.unshift({ name: 'cells', label: trans.__('Cells') });
  }
  const chosen = tabs.find(({ name }) => name === model.tab) ?? tabs[0];
  return (
    <section className="jp-ConvectRuns-stepview" aria-label={planned.name}>
      <div className="jp-ConvectRuns-stepview-bar">
        <Tabs
          label={planned.name}
          tabs={tabs}
          selected={chosen.name}
          onSelect={tab => model.look({ tab })}
        />
        <span className="jp-ConvectRuns-inline">
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
      {step.notices?.map(notice => (
        <p key={notice} className="jp-ConvectRuns-notice" role="status">
          {translated(notice, trans)}
        </p>
      ))}
      <div className="jp-ConvectRuns-stepview-body" role="tabpanel">
        <TabBody
          tab={chosen.name}
          model={model}
          planned={planned}
          step={step}
          attempt={key}
          execute={execute}
        />
      </div>
    </section>
  );
}

function TabBody(props: {
  tab: Tab;
  model: RunModel;
  planned: IPlanStep;
  step: IStep;
  attempt: IAttemptKey | null;
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
      <div className="jp-ConvectRuns-hint">
        {step.reason
          ? translated(step.reason, trans)
          : trans.__('It has not begun.')}
      </div>
    );
  }
  const { run, step: id, attempt: number } = attempt;
  switch (tab) {
    case 'log':
      return <LogView key={`${id} ${number}`} api={api} attempt={attempt} />;
    case 'files':
      return <Files api={api} view={view} step={id} execute={execute} />;
    case 'cells':
    case 'metrics':
      return (
        <WithEvents key={`${id} ${number}`} api={api} attempt={attempt}>
          {({ story }) =>
            tab === 'metrics' ? (
              <Metrics story={story} last={step.metrics} />
            ) : (
              <Cells
                api={api}
                attempt={attempt}
                story={story}
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

/** Follows the events of an attempt while it is shown. */
function WithEvents(props: {
  api: ConvectApi;
  attempt: IAttemptKey;
  children: (events: EventsModel) => JSX.Element;
}): JSX.Element | null {
  const { api, attempt, children } = props;
  const [events, setEvents] = React.useState<EventsModel | null>(null);
  const { run, step, attempt: number } = attempt;
  React.useEffect(() => {
    const model = new EventsModel(api, { run, step, attempt: number });
    setEvents(model);
    return () => model.dispose();
  }, [api, run, step, number]);
  return events ? <Following events={events}>{children}</Following> : null;
}

function Following(props: {
  events: EventsModel;
  children: (events: EventsModel) => JSX.Element;
}): JSX.Element {
  return props.children(useModel(props.events));
}

/** There only where the runtime has shells to open. */
function ShellButton(props: {
  model: RunModel;
  step: string;
  openTerminal: OpenTerminal;
}): JSX.Element | null {
  const { model, step, openTerminal } = props;
  const trans = useTrans();
  const [about, setAbout] = React.useState<IAbout | null>(null);
  const { api, id } = model;
  React.useEffect(() => {
    api.about().then(setAbout, () => undefined);
  }, [api]);
  const runtime = about?.runtimes.find(
    ({ name }) => name === model.view?.runtime
  );
  return about && runtime?.features.includes('shell') ? (
    <Action
      icon={terminalIcon}
      label={trans.__('Terminal')}
      title={trans.__('Open a terminal where this step runs')}
      wide
      onClick={() => openTerminal([about.command, 'runs', 'shell', id, step])}
    />
  ) : null;
}

function Attempts(props: { model: RunModel; step: IStep }): JSX.Element | null {
  const { model, step } = props;
  const trans = useTrans();
  if (step.attempts.length < 2) {
    return null;
  }
  return (
    <HTMLSelect
      aria-label={trans.__('Attempt')}
      value={model.attempt}
      onChange={event => model.look({ attempt: Number(event.target.value) })}
    >
      {step.attempts.map(({ attempt, state }) => (
        <option key={attempt} value={attempt}>
          {trans.__('Attempt %1: %2', attempt, stateLabel(trans, state))}
        </option>
      ))}
    </HTMLSelect>
  );
}
