import * as React from 'react';

import { problemsAt, useForm } from './context';

export interface IRowProps {
  label: string;
  help?: string;
  path: readonly string[];
  /** A value of its own, not that of the defaults. */
  isSet?: boolean;
  isRequired?: boolean;
  fieldId?: string;
  /** Stands beside the label. */
  extra?: React.ReactNode;
  children: React.ReactNode;
}

/** A field with its label, and with what is wrong with it. */
export function Row(props: IRowProps): JSX.Element {
  const { problems, isMixed, session } = useForm();
  const own = problemsAt(problems, props.path);
  const worst = own.find(problem => problem.severity === 'error') ?? own[0];
  return (
    <div
      className={`jp-Pipeline-field${worst ? ` jp-mod-${worst.severity}` : ''}`}
      data-path={props.path.join('.')}
    >
      <div className="jp-Pipeline-fieldLabel">
        <label
          htmlFor={props.fieldId}
          title={props.help ? `${props.label}\n${props.help}` : props.label}
          className={props.isSet ? 'jp-mod-set' : undefined}
        >
          {props.label}
          {props.isRequired && <span className="jp-Pipeline-required"> *</span>}
        </label>
        {isMixed(props.path) && (
          <span className="jp-Pipeline-type">
            {session.trans.__('several values')}
          </span>
        )}
        {props.extra}
      </div>
      {props.children}
      {worst && (
        <div className="jp-Pipeline-fieldProblem" role="alert">
          {worst.message}
          {worst.hint && (
            <span className="jp-Pipeline-hintText"> {worst.hint}</span>
          )}
        </div>
      )}
    </div>
  );
}
