import type { JSONValue as Json } from '@lumino/coreutils';
import * as React from 'react';

import { Field, translated } from '../ui';
import { problemsAt, useForm, words } from './context';
import type { IFormField } from './fields';

export interface ISettingProps {
  field: IFormField;
  path: readonly string[];
  value: Json | undefined;
  /** What the pipeline's defaults say. */
  inherited?: Json;
}

export interface IRowProps {
  label: string;
  help?: string;
  path: readonly string[];
  /** A value of its own, not that of the defaults. */
  isSet?: boolean;
  isRequired?: boolean;
  /** It has several inputs, each with a label of its own. */
  isGroup?: boolean;
  /** Stands beside the label. */
  extra?: React.ReactNode;
  children: React.ReactNode;
}

/** A field with its label, and with what is wrong with it. */
export function Row(props: IRowProps): JSX.Element {
  const { problems, isMixed, trans, marksOnly, hint } = useForm();
  const own = problemsAt(problems, props.path);
  const worst = own.find(problem => problem.severity === 'error') ?? own[0];
  return (
    <Field
      label={props.label}
      title={props.help}
      path={props.path.join('.')}
      isSet={props.isSet}
      isRequired={props.isRequired}
      isGroup={props.isGroup}
      hint={hint?.(props.path)}
      error={
        worst && !marksOnly
          ? [worst.message, worst.hint]
              .map(text => text && translated(text, trans))
              .filter(Boolean)
              .join(' ')
          : null
      }
      severity={worst?.severity}
      extra={
        <>
          {isMixed(props.path) && (
            <span className="jp-Convect-tag">{trans.__('several values')}</span>
          )}
          {props.extra}
        </>
      }
    >
      {props.children}
    </Field>
  );
}

/** What the schema calls a field and says about it, in the language of the page. */
export function useRow({ field, path, value }: ISettingProps): {
  label: string;
  help: string | undefined;
  path: readonly string[];
  isSet: boolean;
} {
  const { trans } = useForm();
  const { title, description } = field.schema;
  return {
    label: words(trans, title ?? field.name),
    help: description && asPlain(words(trans, description)),
    path,
    isSet: value !== undefined
  };
}

/** A tooltip shows code as it shows words: without the marks of Markdown. */
export function asPlain(text: string): string {
  return text.replaceAll('`', '');
}
