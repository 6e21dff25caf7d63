import * as React from 'react';

import type { IFieldSchema } from '../../settings';
import {
  definitionOf,
  SettingField,
  fieldsOf,
  Form,
  Row,
  SCHEMA
} from '../../settings';
import { AddButton, RemoveButton, Select, TextInput } from '../../ui';
import { referencesFor } from '../completion';
import { renameParameter } from '../edits';
import { expressionOf, shownOf } from '../expressions';
import { useForm } from '../form/context';
import { ExpressionInput } from '../form/ExpressionInput';
import { ValueInput } from '../form/Parameters';
import { readList, writeList } from '../form/RuleFields';
import { pipelineIcon } from '../icons';
import type { IParameter, Json } from '../schema';

/** Name, parameters and defaults of the pipeline itself. */
export function PipelineProperties(): JSX.Element {
  const { session } = useForm();
  const { trans, document } = session;
  const own = ROOT_FIELDS.map(field => (
    <SettingField
      key={field.name}
      field={field}
      path={[field.name]}
      value={document[field.name as 'name' | 'description']}
    />
  ));
  return (
    <>
      <h2 className="jp-Convect-formTitle">
        <pipelineIcon.react tag="span" />
        {document.name ?? trans.__('Pipeline')}
      </h2>
      {own}
      <section className="jp-Convect-section">
        <h3>{trans.__('Parameters')}</h3>
        <p className="jp-Convect-aside">
          {trans.__('Values that can be set for each run.')}
        </p>
        <PipelineParameters />
      </section>
      <section className="jp-Convect-section">
        <h3>{trans.__('Outputs')}</h3>
        <p className="jp-Convect-aside">
          {trans.__('Values for pipelines that have this one as a node.')}
        </p>
        <PipelineOutputs />
      </section>
      <h3 className="jp-Convect-formDivider">
        {trans.__('Defaults of every node')}
      </h3>
      <Form
        definition="settings"
        value={document.defaults ?? {}}
        path={['defaults']}
      />
    </>
  );
}

const ROOT_FIELDS = fieldsOf({
  properties: {
    name: SCHEMA.properties.name,
    description: SCHEMA.properties.description as IFieldSchema
  }
});

const TYPES = (definitionOf('parameter').properties?.type.enum ??
  []) as string[];

function PipelineParameters(): JSX.Element {
  const { session } = useForm();
  const { trans } = session;
  const parameters = session.document.parameters ?? {};
  return (
    <>
      {Object.entries(parameters).map(([name, parameter]) => (
        <PipelineParameter key={name} name={name} parameter={parameter} />
      ))}
      <NewName
        section="parameters"
        add={trans.__('Add a parameter')}
        label={trans.__('Name of the new parameter')}
        value={{ type: 'string' }}
      />
    </>
  );
}

/** The values that it gives, each an expression over its nodes. */
function PipelineOutputs(): JSX.Element {
  const { session, set } = useForm();
  const { trans } = session;
  const outputs = session.document.outputs ?? {};
  const names = referencesFor(session, null, 'outputs');
  return (
    <>
      {Object.entries(outputs).map(([name, value]) => (
        <Row
          key={name}
          label={name}
          path={['outputs', name]}
          isSet
          extra={
            <RemoveButton
              label={trans.__('Remove %1', name)}
              onClick={() => set(['outputs', name], undefined)}
            />
          }
        >
          <ExpressionInput
            value={shownOf(value)}
            names={names}
            onChange={text => set(['outputs', name], expressionOf(text) ?? '')}
          />
        </Row>
      ))}
      <NewName
        section="outputs"
        add={trans.__('Add an output')}
        label={trans.__('Name of the new output')}
        value=""
      />
    </>
  );
}

/** A button for one more, which asks how it is called. */
function NewName(props: {
  section: 'parameters' | 'outputs';
  add: string;
  label: string;
  value: Json;
}): JSX.Element {
  const { section, add, label, value } = props;
  const { session, set } = useForm();
  const [isNaming, setNaming] = React.useState(false);
  return isNaming ? (
    <Row label={session.trans.__('Name')} path={[section]}>
      <TextInput
        value=""
        label={label}
        isLazy
        autoFocus
        onChange={text => {
          const name = text.trim();
          setNaming(false);
          if (name && !(name in (session.document[section] ?? {}))) {
            set([section, name], value);
            session.showProperties(null, [section, name]);
          }
        }}
      />
    </Row>
  ) : (
    <AddButton label={add} onClick={() => setNaming(true)} />
  );
}

function PipelineParameter(props: {
  name: string;
  parameter: IParameter;
}): JSX.Element {
  const { session, set } = useForm();
  const { trans } = session;
  const { name, parameter } = props;
  const path = ['parameters', name];
  return (
    <Row
      label={name}
      path={path}
      isSet
      isGroup
      extra={
        <>
          <Select
            value={parameter.type ?? ''}
            label={trans.__('Type of %1', name)}
            options={[
              { value: '', label: trans.__('any') },
              ...TYPES.map(type => ({ value: type, label: type }))
            ]}
            onChange={type => set([...path, 'type'], type || undefined)}
          />
          <RemoveButton
            label={trans.__('Remove %1', name)}
            onClick={() => set(path, undefined)}
          />
        </>
      }
    >
      <div className="jp-Convect-parts">
        <label className="jp-Convect-part jp-mod-wide">
          <ValueInput
            port={{ name, type: parameter.type, choices: parameter.choices }}
            value={parameter.default as Json | undefined}
            set={value => set([...path, 'default'], value)}
          />
          <span>{trans.__('default')}</span>
        </label>
        <label className="jp-Convect-part jp-mod-wide">
          <TextInput
            value={parameter.description ?? ''}
            onChange={text => set([...path, 'description'], text || undefined)}
          />
          <span>{trans.__('description')}</span>
        </label>
        <label className="jp-Convect-part jp-mod-wide">
          <TextInput
            value={writeList(parameter.choices, parameter.type)}
            onChange={text =>
              set([...path, 'choices'], readList(text, parameter.type))
            }
          />
          <span>{trans.__('choices')}</span>
        </label>
        <label className="jp-Convect-part jp-mod-wide">
          <TextInput
            value={name}
            isLazy
            onChange={text => {
              const wish = text.trim();
              if (wish && renameParameter(session.doc, name, wish)) {
                session.showProperties(null, ['parameters', wish]);
              }
            }}
          />
          <span>{trans.__('name')}</span>
        </label>
        <label className="jp-Convect-part jp-mod-check">
          <input
            type="checkbox"
            checked={parameter.required ?? false}
            onChange={event =>
              set([...path, 'required'], event.target.checked || undefined)
            }
          />
          <span>{trans.__('required')}</span>
        </label>
      </div>
    </Row>
  );
}
