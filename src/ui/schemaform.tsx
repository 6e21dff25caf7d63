import { FormComponent } from '@jupyterlab/ui-components';
import type { JSONObject, ReadonlyJSONObject } from '@lumino/coreutils';
// This module itself is loaded lazily.
// eslint-disable-next-line jupyter/prefer-lazy-imports
import { customizeValidator } from '@rjsf/validator-ajv8';
import type { JSONSchema7 } from 'json-schema';
import * as React from 'react';

const validator = customizeValidator<ReadonlyJSONObject>();

/** A form made from a JSON Schema, as the settings editor has them. */
export default function SchemaForm(props: {
  schema: JSONSchema7;
  value: ReadonlyJSONObject;
  onChange: (value: JSONObject) => void;
  /** Say what is wrong; unless told otherwise, from the start. */
  isChecked?: boolean;
}): JSX.Element {
  return (
    <FormComponent
      schema={props.schema}
      formData={props.value}
      validator={validator}
      onChange={({ formData }) => props.onChange(formData as JSONObject)}
      liveValidate={props.isChecked ?? true}
      showErrorList={false}
      compact
      showModifiedFromDefault={false}
    />
  );
}
