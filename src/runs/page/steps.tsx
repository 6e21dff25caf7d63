import * as React from 'react';

import type { IRunView, IStep } from '../../api';
import {
  Duration,
  formatDuration,
  formatExact,
  formatResources,
  isLive,
  StateIcon,
  translated,
  useNow,
  useTrans
} from '../../ui';

/** The steps in the order of the plan, each with its place in time. */
export function Steps(props: {
  view: IRunView;
  selected: string | null;
  onSelect: (step: string) => void;
}): JSX.Element {
  const { view, selected, onSelect } = props;
  const trans = useTrans();
  const live = isLive(view.state);
  const now = useNow(live);
  const steps = view.plan.steps.map(({ id, name, resources }) => ({
    name,
    resources: formatResources(resources),
    step: view.steps[id]
  }));
  const from = view.started ?? view.created;
  const to = Math.max(view.ended ?? now, from + 0.001);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const index = steps.findIndex(({ step }) => step?.id === selected);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1 }[event.key];
    const target = to === undefined ? undefined : steps[to]?.step;
    if (target) {
      event.preventDefault();
      onSelect(target.id);
    }
  };
  return (
    <div
      className="jp-ConvectRuns-steps"
      role="listbox"
      aria-label={trans.__('Steps')}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      {steps.map(
        ({ name, resources, step }) =>
          step && (
            <div
              key={step.id}
              role="option"
              aria-selected={step.id === selected}
              className="jp-ConvectRuns-step"
              data-step={step.id}
              onClick={() => onSelect(step.id)}
            >
              <StateIcon state={step.state} />
              <span className="jp-ConvectRuns-step-name" title={name}>
                {name}
              </span>
              <span className="jp-ConvectRuns-step-time">
                <Duration
                  started={step.started}
                  ended={step.ended}
                  live={isLive(step.state)}
                />
              </span>
              <Bars step={step} from={from} to={to} now={now} />
              <StepNote step={step} resources={resources} />
            </div>
          )
      )}
    </div>
  );
}

/** When the attempts of a step ran, seen against the whole run. */
function Bars(props: {
  step: IStep;
  from: number;
  to: number;
  now: number;
}): JSX.Element {
  const { step, from, to, now } = props;
  const trans = useTrans();
  const percent = (time: number) =>
    `${Math.min(100, Math.max(0, ((time - from) / (to - from)) * 100))}%`;
  return (
    <span className="jp-ConvectRuns-bars">
      {step.attempts.map(({ attempt, state, started, ended }) => {
        if (!started) {
          return null;
        }
        const end = ended ?? now;
        const label = trans.__(
          'Attempt %1: %2, from %3',
          attempt,
          formatDuration(end - started),
          formatExact(started)
        );
        return (
          <span
            key={attempt}
            className="jp-ConvectRuns-bar"
            data-state={state}
            title={label}
            style={{
              left: percent(started),
              width: `max(3px, calc(${percent(end)} - ${percent(started)}))`
            }}
          />
        );
      })}
    </span>
  );
}

function StepNote(props: {
  step: IStep;
  resources: string;
}): JSX.Element | null {
  const { step, resources } = props;
  const trans = useTrans();
  const notes: string[] = [];
  if (step.reason && step.state !== 'succeeded') {
    notes.push(translated(step.reason, trans));
  }
  if (step.state === 'running' && step.progress && step.progress.cells > 0) {
    const { cell, cells } = step.progress;
    notes.push(trans.__('%1 of %2 cells', cell, cells));
  }
  if (step.attempts.length > 1) {
    notes.push(trans._n('%1 attempt', '%1 attempts', step.attempts.length));
  }
  if (resources) {
    notes.push(resources);
  }
  if (step.cache && step.state === 'cached') {
    notes.push(translated(step.cache, trans));
  }
  if (notes.length === 0) {
    return null;
  }
  const text = notes.join(' · ');
  return (
    <span className="jp-ConvectRuns-step-note" title={text}>
      {text}
    </span>
  );
}
