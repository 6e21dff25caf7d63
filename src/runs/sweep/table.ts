import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';

import type { IRunSummary, ISweepView } from '../../api';
import { formatValue } from '../../ui/format';

/** A column of the table of a sweep. */
export interface IColumn {
  id: string;
  kind: 'parameter' | 'metric' | 'state' | 'duration';
  name: string;
  /** A parameter has the same name. */
  twin?: boolean;
}

export interface ISort {
  column: string;
  descending: boolean;
}

/** Parameters that differ or were swept over, then all metrics. */
export function columnsOf(view: ISweepView): IColumn[] {
  const swept = Object.keys(view.space ?? {});
  const names = (of: (run: IRunSummary) => object) => [
    ...new Set(view.runs.flatMap(run => Object.keys(of(run))))
  ];
  const varying = names(run => run.parameters).filter(
    name =>
      new Set(view.runs.map(run => JSON.stringify(run.parameters[name]))).size >
      1
  );
  const parameters = [...new Set([...swept, ...varying])];
  return [
    { id: 'state', kind: 'state', name: '' },
    ...parameters.map((name): IColumn => ({
      id: `p:${name}`,
      kind: 'parameter',
      name
    })),
    ...names(run => run.metrics).map((name): IColumn => ({
      id: `m:${name}`,
      kind: 'metric',
      name,
      twin: parameters.includes(name)
    })),
    { id: 'duration', kind: 'duration', name: '' }
  ];
}

/** What a column is called. */
export function labelOf(
  { kind, name, twin }: IColumn,
  trans: TranslationBundle
): string {
  switch (kind) {
    case 'state':
      return trans.__('State');
    case 'duration':
      return trans.__('Duration');
    default:
      return twin ? trans.__('%1 (result)', name) : name;
  }
}

/** The metric that the best run is chosen by. */
export function goalOf(select: string | null): string | null {
  return select && `m:${select.slice(select.indexOf(':') + 1)}`;
}

export function valueOf(
  run: IRunSummary,
  column: IColumn
): ReadonlyJSONValue | undefined {
  switch (column.kind) {
    case 'parameter':
      return run.parameters[column.name];
    case 'metric':
      return run.metrics[column.name];
    case 'state':
      return run.state;
    case 'duration':
      return run.started && run.ended ? run.ended - run.started : undefined;
  }
}

/** The runs in the order asked for; what has no value comes last either way. */
export function sorted(
  runs: readonly IRunSummary[],
  columns: readonly IColumn[],
  sort: ISort | null
): IRunSummary[] {
  const column = columns.find(({ id }) => id === sort?.column);
  if (!sort || !column) {
    return [...runs];
  }
  const direction = sort.descending ? -1 : 1;
  return [...runs].sort((a, b) => {
    const [x, y] = [valueOf(a, column), valueOf(b, column)];
    if (x === undefined || y === undefined) {
      return (x === undefined ? 1 : 0) - (y === undefined ? 1 : 0);
    }
    if (typeof x === 'number' && typeof y === 'number') {
      return (x - y) * direction;
    }
    return (
      formatValue(x).localeCompare(formatValue(y), undefined, {
        numeric: true
      }) * direction
    );
  });
}

/** Those whose values hold the text; `lr>0.1`, `lr=0.1`, `loss<=2` compare numbers. */
export function filtered(
  runs: readonly IRunSummary[],
  columns: readonly IColumn[],
  text: string
): IRunSummary[] {
  const terms = text.split(/\s+/).filter(term => term !== '');
  return runs.filter(run =>
    terms.every(term => {
      const comparison = /^(.+?)(<=|>=|<|>|=)(.+)$/.exec(term);
      const column =
        comparison && columns.find(({ name }) => name === comparison[1]);
      if (!comparison || !column) {
        return columns.some(candidate =>
          formatValue(valueOf(run, candidate))
            .toLowerCase()
            .includes(term.toLowerCase())
        );
      }
      return compare(valueOf(run, column), comparison[2], comparison[3]);
    })
  );
}

function compare(
  value: ReadonlyJSONValue | undefined,
  operator: string,
  text: string
): boolean {
  if (value === undefined) {
    return false;
  }
  if (operator === '=') {
    return formatValue(value) === text || value === Number(text);
  }
  const [x, y] = [Number(value), Number(text)];
  switch (operator) {
    case '<':
      return x < y;
    case '<=':
      return x <= y;
    case '>':
      return x > y;
    default:
      return x >= y;
  }
}
