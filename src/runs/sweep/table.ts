import type { TranslationBundle } from '@jupyterlab/translation';
import type { ReadonlyJSONValue } from '@lumino/coreutils';

import type { IRunSummary, ISweepView } from '../../api';
import { comparable, isNotFinite } from '../../api/numbers';
import { formatJson, formatValue } from '../../ui/format';

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
      new Set(view.runs.map(run => formatJson(run.parameters[name] ?? null)))
        .size > 1
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

/** The table as a file that spreadsheets open: what is shown, with all its digits. */
export function csvOf(
  runs: readonly IRunSummary[],
  columns: readonly IColumn[],
  trans: TranslationBundle
): string {
  const quoted = (text: string) =>
    /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  const cell = (value: ReadonlyJSONValue | undefined) =>
    typeof value === 'number' ? String(value) : formatValue(value);
  const lines = [
    [trans.__('Run'), ...columns.map(column => labelOf(column, trans))],
    ...runs.map(run => [
      run.id,
      ...columns.map(column => cell(valueOf(run, column)))
    ])
  ];
  return lines.map(line => `${line.map(quoted).join(',')}\r\n`).join('');
}

/** The runs in the order asked for; NaN, infinity and no value come last either way. */
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
    const last = lateness(x) - lateness(y);
    if (last !== 0 || lateness(x) > 0) {
      return last;
    }
    const [one, other] = [comparable(x), comparable(y)];
    if (one !== null && other !== null) {
      return (one < other ? -1 : one > other ? 1 : 0) * direction;
    }
    return (
      formatValue(x).localeCompare(formatValue(y), undefined, {
        numeric: true
      }) * direction
    );
  });
}

function lateness(value: ReadonlyJSONValue | undefined): number {
  return value === undefined ? 2 : isNotFinite(value) ? 1 : 0;
}

interface ITerm {
  /** What is compared; null when the text may be anywhere. */
  name: string | null;
  operator: string;
  text: string;
}

/** What a filter asks for: texts and comparisons, between them spaces or commas. */
export interface IFilter {
  terms: ITerm[];
  /** Names that are compared and that no run has. */
  unknown: string[];
}

const QUOTED = '"[^"]*"';
const TERM = new RegExp(
  `(${QUOTED}|[^\\s,<>=!"]+)\\s*(<=|>=|!=|==|<|>|=)\\s*(${QUOTED}|[^\\s,]+)` +
    `|(${QUOTED}|[^\\s,]+)`,
  'g'
);

/** `lr>0.1, depth = 3 kind!="a b"`, or just words. */
export function parseFilter(
  text: string,
  runs: readonly IRunSummary[]
): IFilter {
  const plain = (part: string) => part.replace(/^"(.*)"$/, '$1');
  const terms = [...text.matchAll(TERM)].map(
    ([, name, operator, value, word]): ITerm =>
      name === undefined
        ? { name: null, operator: '', text: plain(word) }
        : { name: plain(name), operator, text: plain(value) }
  );
  const names = terms.flatMap(({ name }) => (name === null ? [] : [name]));
  const unknown = names.filter(
    name => !runs.some(run => name in run.parameters || name in run.metrics)
  );
  return { terms, unknown: runs.length > 0 ? [...new Set(unknown)] : [] };
}

/** The runs that a filter lets through. */
export function filtered(
  runs: readonly IRunSummary[],
  columns: readonly IColumn[],
  { terms }: IFilter
): IRunSummary[] {
  return runs.filter(run =>
    terms.every(({ name, operator, text }) => {
      if (name === null) {
        return columns.some(column =>
          formatValue(valueOf(run, column))
            .toLowerCase()
            .includes(text.toLowerCase())
        );
      }
      const twins = [run.parameters[name], run.metrics[name]];
      const values = twins.filter(value => value !== undefined);
      return operator === '!='
        ? !values.some(value => compare(value, '=', text))
        : values.some(value => compare(value, operator, text));
    })
  );
}

function compare(
  value: ReadonlyJSONValue,
  operator: string,
  text: string
): boolean {
  if (operator === '=' || operator === '==') {
    return (
      formatValue(value).toLowerCase() === text.toLowerCase() ||
      value === Number(text)
    );
  }
  const [x, y] = [comparable(value) ?? Number(value), Number(text)];
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
