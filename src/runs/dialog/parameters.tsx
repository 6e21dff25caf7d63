import * as React from 'react';

import { Parameter } from '../../settings/parameters';
import { useTrans } from '../../ui';
import type { RunForm } from './form';

/** A field for each parameter of its type, each of which can take several values. */
export function Parameters({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const { parameters } = form;
  if (form.isOpaque || parameters.length === 0) {
    return (
      <div className="jp-Convect-hint">
        {form.isOpaque
          ? trans.__('Its parameters cannot be read.')
          : form.isPipeline
            ? trans.__(
                'No parameters. Add some under Properties in the pipeline editor to choose their values here.'
              )
            : trans.__(
                'No parameters. Tag a cell “parameters” to choose its values here.'
              )}
      </div>
    );
  }
  return (
    <fieldset className="jp-Convect-group">
      <legend>{trans.__('Parameters')}</legend>
      <Offered form={form} />
      {parameters.map(parameter => (
        <Parameter key={parameter.name} form={form} parameter={parameter} />
      ))}
    </fieldset>
  );
}

/** The sweep of last time, to be taken with one press. */
function Offered({ form }: { form: RunForm }): JSX.Element | null {
  const trans = useTrans();
  const entries = Object.entries(form.offered);
  if (entries.length === 0) {
    return null;
  }
  const values = entries.map(([name, { text }]) => `${name}: ${text}`);
  return (
    <p className="jp-Convect-help">
      {trans.__('Last time it was a sweep over %1.', values.join('; '))}{' '}
      <button
        type="button"
        className="jp-Convect-link"
        onClick={() => form.takeOffered()}
      >
        {trans.__('Sweep again')}
      </button>
    </p>
  );
}
