import {
  caretDownIcon,
  caretRightIcon,
  errorIcon
} from '@jupyterlab/ui-components';
import * as React from 'react';

import { sentenceOf } from '../api';
import type { IListRow } from '../ui';
import { List, useModel, useTrans } from '../ui';
import { dragComponent, dropOf } from './drag';
import { componentIcon } from './icons';
import type { CatalogModel } from './model';
import type { CatalogRow } from './search';
import type { IEntry } from './types';

const ROW = 42;
const HEADING = 26;

/** What can be done to a component of the list. */
export interface IListActions {
  /** Put it into the pipeline that is open. */
  add: (entry: IEntry) => void;
}

/** The components by category. */
export function ComponentList(props: {
  id: string;
  model: CatalogModel;
  actions: IListActions;
}): JSX.Element {
  const { id, actions } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const { rows, cursor } = model;

  const onKey = ({ key }: React.KeyboardEvent): boolean => {
    const row = rows[cursor];
    if (row?.kind === 'category' && toggles(key, row.isOpen)) {
      model.toggle(row.name);
    } else if (row?.kind === 'component' && key === 'ArrowLeft') {
      model.moveTo(headingOf(rows, cursor));
    } else if (row?.kind === 'component' && key === 'Enter') {
      actions.add(row.entry);
    } else {
      return false;
    }
    return true;
  };

  const rowOf = (index: number): IListRow => {
    const row = rows[index];
    const isSelected = index === cursor;
    if (row.kind === 'category') {
      return {
        className: 'jp-mod-category',
        isSelected,
        isExpanded: row.isOpen,
        events: {
          onClick: () => {
            model.moveTo(index);
            model.toggle(row.name);
          }
        },
        children: <Heading {...row} />
      };
    }
    const { entry } = row;
    return {
      className: entry.digest ? 'jp-mod-component' : 'jp-mod-broken',
      isSelected,
      level: 2,
      data: { 'data-digest': entry.digest, 'data-catalog': entry.catalog },
      events: {
        onClick: () => model.moveTo(index),
        onContextMenu: () => model.moveTo(index),
        onDoubleClick: () => actions.add(entry),
        onPointerDown: event =>
          dragComponent(event, entry, () => dropOf(model, entry))
      },
      children: <Component entry={entry} />
    };
  };

  return (
    <List
      id={id}
      label={trans.__('Components')}
      count={rows.length}
      sizeOf={index => (rows[index].kind === 'category' ? HEADING : ROW)}
      keyOf={index => rows[index].key}
      row={rowOf}
      cursor={cursor}
      onMove={to => model.moveTo(to)}
      onKey={onKey}
      reveals={model.reveals}
    />
  );
}

function Heading(props: {
  name: string;
  count: number;
  isOpen: boolean;
}): JSX.Element {
  const { name, count, isOpen } = props;
  const trans = useTrans();
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <>
      <Caret.react tag="span" className="jp-Convect-rowCaret" />
      <span className="jp-Convect-rowName">
        {name ? sentenceOf(name) : trans.__('Other')}
      </span>
      <span className="jp-Convect-count">{count}</span>
    </>
  );
}

const Component = React.memo(function Component(props: {
  entry: IEntry;
}): JSX.Element {
  const { entry } = props;
  const trans = useTrans();
  const isBroken = !entry.digest;
  const Icon = isBroken ? errorIcon : componentIcon;
  const detail = isBroken ? entry.error?.message : entry.description;
  return (
    <>
      <Icon.react tag="span" className="jp-Convect-rowCaret" />
      <span className="jp-Convect-rowBody">
        <span className="jp-Convect-rowLine">
          <span className="jp-Convect-rowName">{sentenceOf(entry.name)}</span>
          {isBroken && (
            <span className="jp-Convect-tag jp-mod-error">
              {trans.__('Error')}
            </span>
          )}
          {!isBroken && entry.error && (
            <span className="jp-Convect-tag jp-mod-warn">
              {trans.__('Not read')}
            </span>
          )}
          {entry.update && (
            <span className="jp-Convect-tag jp-mod-update">
              {trans.__('Update')}
            </span>
          )}
        </span>
        <span className="jp-Convect-rowDetail">
          {firstLine(sentenceOf(detail ?? ''))}
        </span>
      </span>
    </>
  );
});

function firstLine(text: string): string {
  return text.split('\n', 1)[0];
}

function toggles(key: string, isOpen: boolean): boolean {
  return ['Enter', ' ', isOpen ? 'ArrowLeft' : 'ArrowRight'].includes(key);
}

/** The row of the category that a component is in. */
function headingOf(rows: readonly CatalogRow[], index: number): number {
  let at = index;
  while (at > 0 && rows[at].kind !== 'category') {
    at -= 1;
  }
  return at;
}
