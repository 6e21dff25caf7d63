import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IConvectApi, ILoopItem, ILoopItems, IRunView } from '../../api';
import { asNumber } from '../../api/numbers';
import { Check, formatValue, isBad, stateLabel, useTrans } from '../../ui';
import type { IComparedLine } from './table';
import { differenceOf } from './table';

/** Items of a loop that are compared one by one. */
export const MOST_ITEMS = 200;
/** How often a run that goes on is asked for its items, until it ends. */
const LOOKS = 20;

/** The loops that any of the runs has; those in items of other loops are part of these items. */
export function loopsOf(views: readonly IRunView[]): string[] {
  const loops = views.flatMap(view =>
    Object.values(view.groups ?? {})
      .filter(({ item, items }) => item.length === 0 && items !== null)
      .map(({ id }) => id)
  );
  return [...new Set(loops)];
}

/** The items of one loop in several runs, those of the same value side by side. */
export function itemLines(
  pages: readonly (ILoopItems | undefined)[],
  trans: TranslationBundle
): IComparedLine[] {
  const columns = pages.map(page => itemsByValue(page));
  const keys = [...new Set(columns.flatMap(column => [...column.keys()]))];
  return keys.flatMap(key => {
    const items = columns.map(column => column.get(key));
    const results = items.map(item => resultsOfItem(item));
    const names = [...new Set(results.flatMap(each => Object.keys(each)))];
    const label = formatValue(items.find(item => item)?.value);
    const line = (name: string, values: string[]): IComparedLine => ({
      name,
      values,
      differs: new Set(values).size > 1
    });
    const states = line(
      label,
      items.map(item => (item ? stateLabel(trans, item.state) : ''))
    );
    const isTold = items.some(item => item && isBad(item.state));
    return [
      ...(isTold || states.differs || names.length === 0 ? [states] : []),
      ...names.map(name => ({
        ...line(
          `${label}: ${name}`,
          results.map(each => formatValue(each[name]))
        ),
        difference: differenceOf(results.map(each => asNumber(each[name])))
      }))
    ];
  });
}

/** By value, and of those that are in the list several times by which of them it is. */
function itemsByValue(page: ILoopItems | undefined): Map<string, ILoopItem> {
  const found = new Map<string, ILoopItem>();
  for (const item of page?.page ?? []) {
    const value = JSON.stringify(item.value);
    let key = value;
    for (let count = 1; found.has(key); count++) {
      key = `${value} ${count}`;
    }
    found.set(key, item);
  }
  return found;
}

/** What the steps of an item gave; of two by one name the later step's. */
function resultsOfItem(
  item: ILoopItem | undefined
): Record<string, ReadonlyJSONValue> {
  const steps = Object.values(item?.steps ?? {});
  const depth = Math.min(...steps.map(step => step.item?.length ?? 0));
  return Object.assign(
    {},
    ...steps
      .filter(step => (step.item?.length ?? 0) === depth)
      .map(({ outputs, metrics }) => ({ ...outputs, ...metrics }))
  );
}

/** The parts of the table that compare loops item by item: what differs, or all of it. */
export function LoopLines(props: {
  api: IConvectApi;
  views: readonly IRunView[];
  children: (title: string, lines: IComparedLine[]) => JSX.Element | null;
}): JSX.Element {
  const { api, views, children } = props;
  return (
    <>
      {loopsOf(views).map(loop => (
        <OneLoop key={loop} api={api} views={views} loop={loop}>
          {children}
        </OneLoop>
      ))}
    </>
  );
}

function OneLoop(props: {
  api: IConvectApi;
  views: readonly IRunView[];
  loop: string;
  children: (title: string, lines: IComparedLine[]) => JSX.Element | null;
}): JSX.Element {
  const { api, views, loop, children } = props;
  const trans = useTrans();
  const [showsAll, setShowsAll] = React.useState(false);
  const found = useItems(api, views, loop);
  const lines = itemLines(
    views.map(({ id }) => found[id]),
    trans
  );
  const counts = views.map(({ groups }) => groups?.[loop]?.items ?? null);
  const count = {
    name: trans.__('Items'),
    values: counts.map(each => (each === null ? '' : String(each))),
    differs: new Set(counts).size > 1,
    difference: differenceOf(counts.map(each => each ?? NaN))
  };
  const isCut = counts.some(each => (each ?? 0) > MOST_ITEMS);
  const shown = showsAll ? lines : lines.filter(({ differs }) => differs);
  return (
    <>
      {children(trans.__('Loop %1', loop), [count, ...shown])}
      <tbody>
        <tr>
          <td colSpan={views.length + 1}>
            <Check
              label={trans.__('Also show the items that are the same')}
              checked={showsAll}
              onChange={setShowsAll}
            />
            {isCut && (
              <span className="jp-Convect-help">
                {trans.__('Only the first %1 items are compared.', MOST_ITEMS)}
              </span>
            )}
          </td>
        </tr>
      </tbody>
    </>
  );
}

/** The first items of a loop, by run. */
function useItems(
  api: IConvectApi,
  views: readonly IRunView[],
  loop: string
): Record<string, ILoopItems> {
  const [found, setFound] = React.useState<Record<string, ILoopItems>>({});
  const wanted = views
    .filter(({ groups }) => groups?.[loop])
    .map(
      ({ id, state, steps_done: done, steps_total: total }) =>
        `${id} ${state} ${Math.floor((LOOKS * done) / Math.max(total, 1))}`
    );
  const key = wanted.join('\n');
  React.useEffect(() => {
    let current = true;
    for (const id of key.split('\n').map(each => each.split(' ')[0])) {
      if (id) {
        api.items({ run: id, loop }, { limit: MOST_ITEMS }).then(
          items => current && setFound(before => ({ ...before, [id]: items })),
          () => undefined
        );
      }
    }
    return () => {
      current = false;
    };
  }, [api, key, loop]);
  return found;
}
