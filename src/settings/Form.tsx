import type { JSONValue as Json } from '@lumino/coreutils';
import * as React from 'react';

import '../../style/form.css';

import { isObject, ReadOnly, Section, TranslationProvider } from '../ui';
import type { IFormContext } from './context';
import { FormContext, problemsAt, useForm, words } from './context';
import { groupsOf } from './fields';
import { SettingField } from './Field';
import { ProfileField } from './profiles';

/** What the fields below share. */
export function FormProvider(props: {
  value: IFormContext;
  children: React.ReactNode;
}): JSX.Element {
  return (
    <FormContext.Provider value={props.value}>
      <TranslationProvider value={props.value.trans}>
        <ReadOnly.Provider value={props.value.isReadOnly}>
          {props.children}
        </ReadOnly.Provider>
      </TranslationProvider>
    </FormContext.Provider>
  );
}

/** Parts that are folded until somebody opens them, or something is set in them. */
const QUIET = new Set(['flow', 'data', 'behaviour', 'kubernetes']);

/** The form of a definition, part by part. */
export function Form(props: {
  definition: string;
  value: object;
  inherited?: object;
  /** The path of the object that is edited, from the node or the document. */
  path?: readonly string[];
  head?: React.ReactNode;
  /** Which of its fields there are; all of them unless said. */
  isShown?: (field: string) => boolean;
}): JSX.Element {
  const path = props.path ?? [];
  const value = props.value as { [key: string]: Json };
  const inherited = (props.inherited ?? {}) as { [key: string]: Json };
  // Defaults have no file to take parameters, and components have inputs instead.
  const isShown = (name: string) =>
    (name !== 'parameters' ||
      (value.kind !== undefined && value.kind !== 'component')) &&
    (props.isShown?.(name) ?? true);
  const { trans, openSections, isFolded, problems } = useForm();
  const [, redraw] = React.useReducer((turn: number) => turn + 1, 0);
  const groups = groupsOf(props.definition, isShown);
  const hasImage = groups.some(({ fields }) =>
    fields.some(({ name }) => name === 'image')
  );
  return (
    <>
      {groups.map(({ name, title, fields }) => {
        const count = fields.filter(field => isSet(value[field.name])).length;
        const isWrong = fields.some(field =>
          problemsAt(problems, [...path, field.name]).some(
            ({ severity }) => severity === 'error'
          )
        );
        // A short form has nothing to fold.
        const isLoud = !isFolded && (groups.length < 3 || !QUIET.has(name));
        return (
          <Section
            key={name}
            name={name}
            title={words(trans, title)}
            count={count}
            isOpen={openSections.get(name) ?? (isLoud || count > 0 || isWrong)}
            onToggle={isOpen => {
              openSections.set(name, isOpen);
              redraw();
            }}
          >
            {name === 'general' && props.head}
            {fields.some(field => field.name === 'resources') && (
              <ProfileField path={path} value={value} hasImage={hasImage} />
            )}
            {fields.map(field => (
              <SettingField
                key={field.name}
                field={field}
                path={[...path, field.name]}
                value={value[field.name]}
                inherited={inherited[field.name]}
              />
            ))}
          </Section>
        );
      })}
    </>
  );
}

function isSet(value: Json | undefined): boolean {
  return isObject(value) ? Object.keys(value).length > 0 : value !== undefined;
}
