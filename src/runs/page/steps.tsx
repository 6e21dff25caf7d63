import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import type { IGroup, ILoopItem, IRunView, IStep, State } from '../../api';
import {
  Duration,
  formatDuration,
  formatExact,
  formatResources,
  formatValue,
  isBad,
  isLive,
  LIVE,
  StateIcon,
  translated,
  useNow,
  useTrans
} from '../../ui';
import type { IOpenItem, IOutlineRow } from './outline';
import { outlineOf } from './outline';

/** The steps in the order of the plan, each with its place in time. */
export function Steps(props: {
  view: IRunView;
  /** The item of a loop whose steps are listed. */
  open: IOpenItem | null;
  selected: string | null;
  onSelect: (step: string) => void;
}): JSX.Element {
  const { view, open, selected, onSelect } = props;
  const trans = useTrans();
  const live = isLive(view.state);
  const now = useNow(live);
  const rows = outlineOf(view, open);
  const from = view.started ?? view.created;
  const to = Math.max(view.ended ?? now, from + 0.001);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const index = rows.findIndex(({ id }) => id === selected);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    let to = index + (step ?? 0);
    // The line of an item only tells what follows.
    while (step !== undefined && rows[to] && !isChoice(rows[to])) {
      to += step;
    }
    if (step !== undefined && rows[to]) {
      event.preventDefault();
      onSelect(rows[to].id);
    }
  };
  return (
    <div
      className="jp-Convect-steps"
      role="listbox"
      aria-label={trans.__('Steps')}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      {rows.map(row => {
        const { id, name, depth, step, group, item, planned } = row;
        const what = step ?? group ?? item!;
        return (
          <div
            key={id}
            role="option"
            aria-selected={id === selected}
            className="jp-Convect-step"
            data-step={id}
            data-of={view.id}
            data-node={step?.node ?? id}
            style={{ paddingLeft: 16 + 16 * depth }}
            onClick={() => isChoice(row) && onSelect(id)}
          >
            <StateIcon state={what.state} reason={step?.reason} />
            <span className="jp-Convect-stepName" title={name}>
              {item ? itemLabel(item, trans) : name}
            </span>
            <span className="jp-Convect-stepTime">
              <Duration
                started={what.started}
                ended={what.ended}
                live={isLive(what.state)}
              />
            </span>
            {step ? (
              <Bars step={step} from={from} to={to} now={now} />
            ) : group && group.items !== null ? (
              <ItemBar group={group} />
            ) : (
              <span />
            )}
            {step ? (
              <StepNote
                step={step}
                resources={formatResources(planned?.resources)}
                now={now}
              />
            ) : (
              group && <GroupNote group={group} />
            )}
          </div>
        );
      })}
    </div>
  );
}

function isChoice({ step, group }: IOutlineRow): boolean {
  return step !== undefined || group !== undefined;
}

export function itemLabel(
  { index, value }: Pick<ILoopItem, 'index' | 'value'>,
  trans: TranslationBundle
): string {
  return trans.__('Item %1: %2', index, formatValue(value));
}

/** How the items of a loop are, as parts of one bar. */
function ItemBar({ group }: { group: IGroup }): JSX.Element {
  const total = Math.max(1, group.items ?? 0);
  let at = 0;
  return (
    <span className="jp-Convect-bars" aria-hidden>
      {ENDED.map(state => {
        const share = ((group.counts[state] ?? 0) / total) * 100;
        const left = at;
        at += share;
        return (
          share > 0 && (
            <span
              key={state}
              className="jp-Convect-bar"
              data-state={state}
              style={{ left: `${left}%`, width: `${share}%` }}
            />
          )
        );
      })}
    </span>
  );
}

const ENDED: readonly State[] = [
  'failed',
  'lost',
  'cancelled',
  'succeeded',
  'cached',
  'skipped',
  'running'
];

function GroupNote({ group }: { group: IGroup }): JSX.Element | null {
  const trans = useTrans();
  const { counts, items, reason, state } = group;
  const notes: string[] = [];
  if (items !== null) {
    const left = LIVE.reduce((sum, live) => sum + (counts[live] ?? 0), 0);
    notes.push(trans.__('%1 of %2 items done', items - left, items));
    const failed = (counts.failed ?? 0) + (counts.lost ?? 0);
    if (failed) {
      notes.push(trans.__('%1 failed', failed));
    }
  }
  if (reason && state !== 'succeeded' && !(items && isBad(state))) {
    notes.push(translated(reason, trans));
  }
  const text = notes.join(' · ');
  return text ? (
    <span className="jp-Convect-stepNote" title={text}>
      {text}
    </span>
  ) : null;
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
    <span className="jp-Convect-bars">
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
            className="jp-Convect-bar"
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

/** How long a step will take yet, if it takes as long as the last time. */
export function timeLeft(
  { state, started, progress }: IStep,
  now: number,
  trans: TranslationBundle
): string | null {
  const expected = progress?.expected;
  if (state !== 'running' || !started || !expected) {
    return null;
  }
  const left = started + expected - now;
  return left > 0
    ? trans.__('about %1 left', formatDuration(left))
    : trans.__('took %1 the last time', formatDuration(expected));
}

function StepNote(props: {
  step: IStep;
  resources: string;
  now: number;
}): JSX.Element | null {
  const { step, resources, now } = props;
  const trans = useTrans();
  const notes: string[] = [];
  if (step.reason && step.state !== 'succeeded') {
    notes.push(translated(step.reason, trans));
  }
  if (step.state === 'running' && step.progress && step.progress.cells > 0) {
    const { cell, cells } = step.progress;
    notes.push(trans.__('%1 of %2 cells', cell, cells));
  }
  const left = timeLeft(step, now, trans);
  if (left) {
    notes.push(left);
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
    <span className="jp-Convect-stepNote" title={text}>
      {text}
    </span>
  );
}
