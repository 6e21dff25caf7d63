import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { Json } from '../schema';
import { isObject } from '../serialize';
import { useForm } from './context';
import type { IFormGroup } from './fields';
import { groupsOf } from './fields';
import { Field } from './Field';
import { Parameters } from './Parameters';

/** Parts that are folded until somebody opens them, or something is set in them. */
const QUIET = new Set(['data', 'behaviour', 'kubernetes']);

/** The form of a definition, part by part. */
export function Form(props: {
  definition: string;
  value: object;
  inherited?: object;
  /** The path of the object that is edited, from the node or the document. */
  path?: readonly string[];
  head?: React.ReactNode;
}): JSX.Element {
  const path = props.path ?? [];
  const value = props.value as { [key: string]: Json };
  const inherited = (props.inherited ?? {}) as { [key: string]: Json };
  // Defaults have no file to take parameters, and components have inputs instead.
  const isShown = (name: string) =>
    name !== 'parameters' ||
    (value.kind !== undefined && value.kind !== 'component');
  return (
    <>
      {groupsOf(props.definition, isShown).map(group => (
        <Section
          key={group.name}
          group={group}
          count={group.fields.filter(field => isSet(value[field.name])).length}
        >
          {group.name === 'general' && props.head}
          {group.fields.map(field => {
            const widget = field.schema['x-form']?.widget;
            return widget === 'parameters' || widget === 'inputs' ? (
              <Parameters
                key={field.name}
                property={field.name as 'parameters' | 'inputs'}
              />
            ) : (
              <Field
                key={field.name}
                field={field}
                path={[...path, field.name]}
                value={value[field.name]}
                inherited={inherited[field.name]}
              />
            );
          })}
        </Section>
      ))}
    </>
  );
}

function isSet(value: Json | undefined): boolean {
  return isObject(value) ? Object.keys(value).length > 0 : value !== undefined;
}

function Section(props: {
  group: IFormGroup;
  count: number;
  children: React.ReactNode;
}): JSX.Element {
  const { session } = useForm();
  const { name, title } = props.group;
  const known = session.openSections.get(name);
  const isOpen = known ?? (!QUIET.has(name) || props.count > 0);
  const [, redraw] = React.useReducer((turn: number) => turn + 1, 0);
  const icon = isOpen ? caretDownIcon : caretRightIcon;
  const id = React.useId();
  return (
    <section className="jp-Pipeline-section" data-group={name}>
      <h3>
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => {
            session.openSections.set(name, !isOpen);
            redraw();
          }}
        >
          <icon.react tag="span" />
          {session.words(title)}
          {!isOpen && props.count > 0 && (
            <span className="jp-Pipeline-count">{props.count}</span>
          )}
        </button>
      </h3>
      {isOpen && <div id={id}>{props.children}</div>}
    </section>
  );
}
