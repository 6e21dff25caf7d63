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
  const parameters = { ...(planned.parameters ?? {}) };
  return (
    <div className="jp-ConvectRuns-values">
      <ValueTable
        title={trans.__('Parameters')}
        values={
          Object.keys(parameters).length > 0
            ? parameters
            : (view.parameters as ReadonlyJSONObject)
        }
        empty={trans.__('It was given none.')}
      />
      <ValueTable
        title={trans.__('Values')}
        values={step.outputs}
        empty={trans.__('It has given none.')}
      />
    </div>
  );
}

export function ValueTable(props: {
  title: string;
  values: ReadonlyJSONObject;
  empty: string;
}): JSX.Element {
  const { title, values, empty } = props;
  const names = Object.keys(values);
  return (
    <section>
      <h4>{title}</h4>
      {names.length === 0 ? (
        <div className="jp-ConvectRuns-hint">{empty}</div>
      ) : (
        <table className="jp-ConvectRuns-table">
          <tbody>
            {names.map(name => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>
                  <Value value={values[name]} />
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
