import type { ReadonlyJSONObject, ReadonlyJSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IPlanStep, IRunView, IStep } from '../../api';
import { formatJson, formatValue, useTrans } from '../../ui';

/** What went into a step and what came out of it. */
export function Values(props: {
  view: IRunView;
  planned: IPlanStep;
  step: IStep;
}): JSX.Element {
  const { view, planned, step } = props;
  const trans = useTrans();
  const unset = new Set([
    ...Object.keys(planned.defaults ?? {}),
    ...Object.keys(planned.computed ?? {})
  ]);
  const computed = Object.entries(planned.computed ?? {}).filter(
    ([name]) => !(name in step.parameters)
  );
  return (
    <div className="jp-Convect-values">
      <ValueTable
        title={trans.__('Parameters')}
        values={filled(step.parameters) ? step.parameters : view.parameters}
        note={name =>
          unset.has(name) || (!filled(step.parameters) && isDefault(view, name))
            ? trans.__('default')
            : null
        }
        unknown={computed}
        empty={trans.__('It has none.')}
      />
      <ValueTable
        title={trans.__('Values')}
        values={step.outputs}
        empty={trans.__('It has given none.')}
      />
    </div>
  );
}

function filled(values: ReadonlyJSONObject): boolean {
  return Object.keys(values).length > 0;
}

function isDefault(view: IRunView, name: string): boolean {
  return view.defaults.includes(name);
}

export function ValueTable(props: {
  title: string;
  values: ReadonlyJSONObject;
  empty: string;
  /** What to say beside a value. */
  note?: (name: string) => string | null;
  /** Names whose values are not known, with the code that gives them. */
  unknown?: readonly [string, string][];
}): JSX.Element {
  const { title, values, empty, note, unknown = [] } = props;
  const trans = useTrans();
  const names = Object.keys(values);
  return (
    <section>
      <h4>{title}</h4>
      {names.length + unknown.length === 0 ? (
        <div className="jp-Convect-hint">{empty}</div>
      ) : (
        <table className="jp-Convect-table">
          <tbody>
            {names.map(name => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  <Value value={values[name]} />
                  {note?.(name) && (
                    <span className="jp-Convect-tag">{note(name)}</span>
                  )}
                </td>
              </tr>
            ))}
            {unknown.map(([name, code]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  {trans.__('computed:')} <code>{code}</code>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

function Value({ value }: { value: ReadonlyJSONValue }): JSX.Element {
  const text = formatValue(value);
  return typeof value === 'object' && value !== null && text.length > 60 ? (
    <pre>{formatJson(value, 2)}</pre>
  ) : (
    <code>{text}</code>
  );
}
