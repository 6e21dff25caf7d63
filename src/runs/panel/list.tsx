import * as React from 'react';

import { CommandIDs } from '../../commands';
import type { IListRow } from '../../ui';
import type { Execute } from '../../ui';
import { List, useModel, useTrans } from '../../ui';
import type { PanelModel, PanelRow } from './model';
import { RunRow, SweepRow } from './rows';

const ROW = 44;

/** Runs and sweeps, and what the pointer and the keyboard do to them. */
export function RunList(props: {
  model: PanelModel;
  execute: Execute;
}): JSX.Element {
  const model = useModel(props.model);
  const { execute } = props;
  const trans = useTrans();
  const onSight = React.useCallback(
    (first: number, last: number) => model.show(first, last),
    [model]
  );

  const open = (row: PanelRow, event?: React.MouseEvent) => {
    if (row.kind === 'run') {
      const several = event && (event.ctrlKey || event.metaKey);
      model.select(row.run.id, several ? 'toggle' : 'only');
      if (!several) {
        execute(CommandIDs.openRun, { run: row.run.id });
      }
    } else if (row.kind === 'sweep') {
      execute(CommandIDs.openSweep, { sweep: row.sweep.id });
    }
  };

  const move = (to: number, isMarking: boolean) => {
    if (isMarking) {
      model.selectTo(to);
    }
    model.moveTo(to);
  };

  const remove = (row: PanelRow) => {
    if (row.kind === 'sweep') {
      execute(CommandIDs.deleteSweep, { sweep: row.sweep.id });
    } else if (row.kind === 'run') {
      const several = model.selection.size > 1;
      execute(
        CommandIDs.deleteRun,
        several ? { runs: [...model.selection] } : { run: row.run.id }
      );
    }
  };

  const onKey = (event: React.KeyboardEvent): boolean => {
    const row = model.row(model.cursor);
    const { key } = event;
    if (key === 'Enter') {
      open(row);
    } else if (key === 'Delete') {
      remove(row);
    } else if (key === ' ' && row.kind === 'run') {
      model.select(row.run.id, 'toggle');
    } else if (key.toLowerCase() === 'a' && (event.ctrlKey || event.metaKey)) {
      model.selectAll();
    } else if (key === 'Escape' && model.selection.size > 0) {
      model.clearSelection();
    } else if (
      row.kind === 'sweep' &&
      key === (row.expanded ? 'ArrowLeft' : 'ArrowRight')
    ) {
      model.toggleSweep(row.sweep.id);
    } else {
      return false;
    }
    return true;
  };

  const rowOf = (index: number): IListRow => {
    const row = model.row(index);
    const isRun = row.kind === 'run';
    const isSweep = row.kind === 'sweep';
    return {
      className: `jp-mod-${row.kind}`,
      level: isRun && row.nested ? 2 : 1,
      isSelected: isRun && model.selection.has(row.run.id),
      isExpanded: isSweep ? row.expanded : undefined,
      data: {
        'data-run': isRun ? row.run.id : undefined,
        'data-sweep': isSweep ? row.sweep.id : undefined
      },
      events: {
        onClick: event => {
          move(index, event.shiftKey);
          if (!event.shiftKey) {
            open(row, event);
          }
        }
      },
      children: isRun ? (
        <RunRow run={row.run} nested={row.nested} execute={execute} />
      ) : isSweep ? (
        <SweepRow
          sweep={row.sweep}
          expanded={row.expanded}
          onToggle={() => model.toggleSweep(row.sweep.id)}
          execute={execute}
        />
      ) : null
    };
  };

  return (
    <List
      id="jp-convect-run-list"
      label={trans.__('Runs')}
      count={model.rowCount}
      sizeOf={() => ROW}
      keyOf={index => model.key(index)}
      indexOf={key => model.indexOf(key)}
      row={rowOf}
      cursor={model.cursor}
      isMultiselectable
      onMove={move}
      onKey={onKey}
      onSight={onSight}
    />
  );
}
