import { useVirtualizer } from '@tanstack/react-virtual';
import * as React from 'react';

import type { IGroup, ILoopItem, State } from '../../api';
import {
  Duration,
  Failure,
  formatValue,
  isBad,
  isLive,
  isObject,
  pageOf,
  rowFor,
  StateIcon,
  stateLabel,
  translated,
  useKept,
  useModel,
  useTrans
} from '../../ui';
import '../../../style/sweep.css';

import type { IItemColumn, LoopModel } from './loop';
import { tellingStep, valueIn } from './loop';
import type { RunModel } from './model';

const ROW = 28;
/** Rows that are drawn before and after those in sight. */
const OVERSCAN = 12;

/** In this order they are offered to choose from. */
const STATES: readonly State[] = [
  'failed',
  'lost',
  'running',
  'starting',
  'queued',
  'waiting',
  'succeeded',
  'cached',
  'skipped',
  'cancelled'
];

/** A group of a run: how it is, and of a loop all its items. */
export function GroupView(props: {
  model: RunModel;
  group: IGroup;
}): JSX.Element {
  const { model, group } = props;
  const trans = useTrans();
  const { plan } = model.view!;
  const planned =
    plan.groups?.find(({ id }) => id === group.node) ??
    plan.steps.find(({ id }) => id === group.node);
  const name = planned?.name ?? group.id;
  return (
    <section className="jp-Convect-stepView" aria-label={name}>
      <div className="jp-Convect-stepBar">
        <span className="jp-Convect-inline">
          <StateIcon state={group.state} />
          <b>{name}</b>
          {planned?.for_each && (
            <span className="jp-Convect-help">
              {trans.__('for each %1', planned.for_each.name)}
            </span>
          )}
        </span>
      </div>
      {group.reason && (
        <p
          className="jp-Convect-message"
          data-severity={isBad(group.state) ? 'error' : 'info'}
        >
          {translated(group.reason, trans)}
        </p>
      )}
      {model.loop && (
        <LoopTable
          key={group.id}
          model={model.loop}
          name={planned?.for_each?.name ?? trans.__('Item')}
          onOpen={item => model.lookAtItem(group.id, item)}
          takeKeyboard={() => model.takeKeyboard()}
        />
      )}
    </section>
  );
}

/** How many items are in each state; each shows only those. */
function Counts({ model }: { model: LoopModel }): JSX.Element {
  const trans = useTrans();
  const { counts, items } = model.group;
  const choices: { state: State | null; label: string; count: number }[] = [
    { state: null, label: trans.__('All'), count: items ?? 0 },
    ...STATES.filter(state => counts[state]).map(state => ({
      state,
      label: stateLabel(trans, state),
      count: counts[state]!
    }))
  ];
  return (
    <div
      className="jp-Convect-stateCounts"
      role="group"
      aria-label={trans.__('Items by state')}
    >
      {choices.map(({ state, label, count }) => (
        <button
          key={label}
          type="button"
          className="jp-Convect-stateCount"
          data-state={state ?? undefined}
          aria-pressed={model.filter === state}
          onClick={() => model.setFilter(state)}
        >
          {label} <b>{count}</b>
        </button>
      ))}
    </div>
  );
}

/** The items, one a line, of which only those in sight are drawn and asked for. */
function LoopTable(props: {
  model: LoopModel;
  /** What an item is called. */
  name: string;
  onOpen: (item: ILoopItem) => void;
  takeKeyboard: () => boolean;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const scroller = React.useRef<HTMLDivElement>(null);
  const [kept, setCursor] = useKept(`item cursor ${model.group.id}`, 0);
  const id = React.useId();
  const { count, columns, fields } = model;
  const cursor = Math.max(0, Math.min(kept, count - 1));
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: OVERSCAN
  });
  const rows = virtualizer.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  const last = rows[rows.length - 1]?.index ?? 0;
  React.useEffect(() => model.show(first, last), [model, first, last]);
  React.useEffect(() => {
    if (props.takeKeyboard()) {
      scroller.current?.focus();
      virtualizer.scrollToIndex(cursor);
    }
  });
  const onKeyDown = (event: React.KeyboardEvent) => {
    const next = rowFor(event.key, cursor, pageOf(virtualizer), count);
    const item = model.at(cursor);
    if (next !== null) {
      setCursor(next);
      virtualizer.scrollToIndex(next);
    } else if (event.key === 'Enter' && item) {
      props.onOpen(item);
    } else {
      return;
    }
    event.preventDefault();
  };
  const heads = [
    { key: '#', label: '#' },
    { key: 'state', label: trans.__('State') },
    ...(fields ?? [props.name]).map(name => ({
      key: `= ${name}`,
      label: name
    })),
    { key: 'time', label: trans.__('Time') },
    ...columns.map(column => ({
      key: `${column.node} ${column.name}`,
      label: labelOf(column, columns)
    }))
  ];
  const template = heads
    .map(({ key }) =>
      key === '#'
        ? '56px'
        : key === 'state'
          ? 'minmax(120px, 2fr)'
          : 'minmax(80px, 1fr)'
    )
    .join(' ');
  return (
    <>
      <Counts model={model} />
      <Failure error={model.error} />
      {count === 0 && (
        <p className="jp-Convect-hint">
          {model.group.items === 0
            ? trans.__('The list had no items.')
            : trans.__('Its items are not known yet.')}
        </p>
      )}
      <div
        ref={scroller}
        className="jp-Convect-grid jp-Convect-items"
        role="grid"
        aria-label={trans.__('Items of the loop')}
        aria-rowcount={count}
        aria-activedescendant={count > 0 ? `${id}-${cursor}` : undefined}
        tabIndex={0}
        onKeyDown={onKeyDown}
      >
        <div
          className="jp-Convect-gridHead"
          role="row"
          style={{ gridTemplateColumns: template }}
        >
          {heads.map(({ key, label }) => (
            <span
              key={key}
              role="columnheader"
              data-kind={key === 'state' ? 'state' : undefined}
              title={label}
            >
              {label}
            </span>
          ))}
        </div>
        <div
          className="jp-Convect-gridBody"
          style={{ height: virtualizer.getTotalSize() }}
        >
          {rows.map(({ index, start }) => {
            const item = model.at(index);
            return (
              <div
                key={index}
                id={`${id}-${index}`}
                role="row"
                aria-rowindex={index + 1}
                aria-selected={index === cursor}
                className="jp-Convect-gridRow"
                data-item={item?.index}
                style={{
                  gridTemplateColumns: template,
                  transform: `translateY(${start}px)`
                }}
                onClick={() => {
                  setCursor(index);
                  if (item) {
                    props.onOpen(item);
                  }
                }}
              >
                {item && (
                  <Cells item={item} columns={columns} fields={fields} />
                )}
              </div>
            );
          })}
        </div>
      </div>
    </>
  );
}

function Cells(props: {
  item: ILoopItem;
  columns: readonly IItemColumn[];
  fields: readonly string[] | null;
}): JSX.Element {
  const { item, columns, fields } = props;
  const trans = useTrans();
  const why = reasonOf(item);
  const reason =
    why && !isLive(item.state) && item.state !== 'succeeded'
      ? translated(why, trans)
      : '';
  const values = fields?.map(name =>
    isObject(item.value) ? item.value[name] : undefined
  ) ?? [item.value];
  return (
    <>
      <span role="gridcell">{item.index}</span>
      <span role="gridcell" data-kind="state" title={reason}>
        <StateIcon state={item.state} />
        <span className="jp-Convect-gridReason">{reason}</span>
      </span>
      {values.map((value, index) => (
        <span key={index} role="gridcell" title={formatValue(value)}>
          {formatValue(value)}
        </span>
      ))}
      <span role="gridcell">
        <Duration
          started={item.started}
          ended={item.ended}
          live={isLive(item.state)}
        />
      </span>
      {columns.map(column => {
        const text = formatValue(valueIn(item, column));
        return (
          <span
            key={`${column.node} ${column.name}`}
            role="gridcell"
            title={text}
          >
            {text}
          </span>
        );
      })}
    </>
  );
}

/** Why an item is as it is: of several steps, what happened to the one that failed. */
function reasonOf(item: ILoopItem): string | null {
  const step = isBad(item.state) ? tellingStep(item) : undefined;
  return (step && isBad(step.state) && step.reason) || item.reason;
}

/** A value by its name, with its step where two steps give one of that name. */
function labelOf(
  { node, name }: IItemColumn,
  columns: readonly IItemColumn[]
): string {
  const isUnique = columns.filter(column => column.name === name).length === 1;
  return isUnique ? name : `${node}.${name}`;
}
