import * as React from 'react';

import { lazy, runtimeLabel, useTrans } from '../../ui';
import type { RunForm } from './form';

const SchemaForm = lazy(() => import('../../ui/schemaform'));

/** The options that only this runtime has, as its schema describes them. */
export function Options({ form }: { form: RunForm }): JSX.Element | null {
  const trans = useTrans();
  const { runtime } = form;
  if (!runtime) {
    return null;
  }
  return (
    <fieldset className="jp-Convect-group">
      <legend>
        {trans.__(
          'Options of %1',
          runtimeLabel(trans, runtime.name, runtime.display_name)
        )}
      </legend>
      <React.Suspense fallback={null}>
        <SchemaForm
          schema={runtime.options_schema}
          value={form.choice.options}
          onChange={options => form.set({ options })}
        />
      </React.Suspense>
    </fieldset>
  );
}
