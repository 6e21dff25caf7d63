import * as React from 'react';

import { sentenceOf } from '../../api';
import { readValue, Row, writeValue } from '../../settings';
import {
  AddButton,
  BrowseButton,
  RemoveButton,
  Select,
  TextInput
} from '../../ui';
import { itemsAround } from '../completion';
import { addParameterFor } from '../edits';
import {
  itemExpression,
  outputExpression,
  parameterExpression,
  wholeReference
} from '../expressions';
import { nameOf } from '../graph';
import type { IPort } from '../ports';
import type { Json } from '../schema';
import { isObject } from '../serialize';
import { useForm } from './context';
import { pickFiles } from './pick';

type Source = 'value' | 'parameter' | 'output' | 'item' | 'file';

/** What a node is given: each as a value, a pipeline parameter, an output, or a file. */
export function Parameters(props: {
  property: 'parameters' | 'inputs';
}): JSX.Element {
  const { session, node, set } = useForm();
  const { trans } = session;
  const view = session.views.get(node!)!;
  const { property } = props;
  const values = valuesOf(session.document.nodes[node!], property);
  const [isNaming, setNaming] = React.useState(false);
  return (
    <>
      {view.inputs.length === 0 && !isNaming && (
        <p className="jp-Convect-aside">
          {view.kind === 'notebook'
            ? trans.__(
                'A notebook says what it takes in a cell tagged “parameters”.'
              )
            : view.kind === 'component'
              ? trans.__('This component takes nothing.')
              : trans.__('Parameters reach it as environment variables.')}
        </p>
      )}
      {view.inputs.map(port => (
        <Parameter
          key={port.name}
          port={port}
          property={property}
          value={values[port.name]}
        />
      ))}
      {isNaming && (
        <Row label={trans.__('Name')} path={[property]}>
          <TextInput
            value=""
            label={trans.__('Name of the new parameter')}
            isLazy
            autoFocus
            onChange={text => {
              const name = text.trim();
              setNaming(false);
              if (name && !(name in values)) {
                set([property, name], '');
                session.showProperties(node, [property, name]);
              }
            }}
          />
        </Row>
      )}
      {property === 'parameters' && !isNaming && (
        <AddButton
          label={trans.__('Add a parameter')}
          onClick={() => setNaming(true)}
        />
      )}
    </>
  );
}

function valuesOf(node: object, property: string): { [key: string]: Json } {
  const values = (node as { [key: string]: unknown })[property];
  return isObject(values) ? values : {};
}

function sourceOf(value: Json | undefined): Source {
  const reference = wholeReference(value);
  if (reference?.kind === 'parameter') {
    return 'parameter';
  }
  if (reference?.kind === 'output') {
    return 'output';
  }
  if (reference?.kind === 'each') {
    return 'item';
  }
  return isObject(value) && typeof value.file === 'string' ? 'file' : 'value';
}

function Parameter(props: {
  port: IPort;
  property: 'parameters' | 'inputs';
  value: Json | undefined;
}): JSX.Element {
  const { session, node, set } = useForm();
  const { trans } = session;
  const { port, property, value } = props;
  const items = itemsAround(session, node, true);
  const path = [property, port.name];
  const [chosen, setChosen] = React.useState<Source | null>(null);
  const source =
    chosen ?? (value === undefined && port.isFile ? 'file' : sourceOf(value));
  const write = (next: Json | undefined) => {
    setChosen(null);
    set(path, next);
  };
  const options = [
    { value: 'value', label: trans.__('Value') },
    { value: 'parameter', label: trans.__('Pipeline parameter') },
    { value: 'output', label: trans.__('Output of a node') },
    ...(items.length > 0 || source === 'item'
      ? [{ value: 'item', label: trans.__('Item of a loop') }]
      : []),
    ...(property === 'inputs'
      ? [{ value: 'file', label: trans.__('File') }]
      : [])
  ];
  return (
    <Row
      label={port.name}
      help={port.help && sentenceOf(port.help)}
      path={path}
      isSet={value !== undefined}
      isRequired={port.isRequired && value === undefined}
      extra={
        <>
          {port.type && <span className="jp-Convect-tag">{port.type}</span>}
          {port.isUnknown && (
            <RemoveButton
              label={trans.__('Remove %1', port.name)}
              onClick={() => write(undefined)}
            />
          )}
          <Select
            value={source}
            label={trans.__('Where %1 comes from', port.name)}
            options={options}
            onChange={next => {
              setChosen(next as Source);
              if (next === 'item' && items.length === 1) {
                write(itemExpression(items[0]));
              }
              if (next === 'value' && source !== 'value') {
                write(undefined);
              }
            }}
          />
        </>
      }
    >
      {port.help && (
        <div className="jp-Convect-help">{sentenceOf(port.help)}</div>
      )}
      {source === 'value' && (
        <ValueInput port={port} value={value} set={write} />
      )}
      {source === 'parameter' && (
        <PipelineParameter
          port={port}
          value={value}
          set={write}
          onChosen={() => setChosen(null)}
        />
      )}
      {source === 'output' && <Output value={value} set={write} />}
      {source === 'item' && <Item value={value} items={items} set={write} />}
      {source === 'file' && <FileValue value={value} set={write} />}
    </Row>
  );
}

interface ISourceProps {
  value: Json | undefined;
  set: (value: Json | undefined) => void;
}

/** A typed value. */
export function ValueInput(
  props: ISourceProps & { port: IPort; label?: string }
): JSX.Element {
  const { trans } = useForm().session;
  const { port, value } = props;
  const fallback = writeValue(port.default);
  const choices =
    port.choices ?? (port.type === 'boolean' ? [true, false] : null);
  if (
    choices &&
    (value === undefined ||
      choices.some(item => writeValue(item) === writeValue(value)))
  ) {
    return (
      <Select
        label={props.label}
        value={writeValue(value)}
        options={[
          {
            value: '',
            label: fallback ? trans.__('Default (%1)', fallback) : ''
          },
          ...choices.map(item => ({
            value: writeValue(item),
            label: writeValue(item)
          }))
        ]}
        onChange={text =>
          props.set(choices.find(item => writeValue(item) === text))
        }
      />
    );
  }
  return (
    <TextInput
      label={props.label}
      value={writeValue(value)}
      placeholder={fallback}
      onChange={text => props.set(readValue(text, port.type))}
    />
  );
}

const NEW = '\0new';

function PipelineParameter(
  props: ISourceProps & { port: IPort; onChosen: () => void }
): JSX.Element {
  const { session, node } = useForm();
  const { trans } = session;
  const { port } = props;
  const reference = wholeReference(props.value);
  const known = session.document.parameters ?? {};
  return (
    <Select
      label={trans.__('Pipeline parameter for %1', port.name)}
      value={reference?.kind === 'parameter' ? reference.name : ''}
      options={[
        { value: '', label: trans.__('Choose…') },
        ...Object.keys(known).map(name => ({ value: name, label: name })),
        ...(port.name in known
          ? []
          : [{ value: NEW, label: trans.__('New: %1', port.name) }])
      ]}
      onChange={name => {
        if (name === NEW) {
          addParameterFor(session.doc, node!, port);
          props.onChosen();
        } else {
          props.set(name ? parameterExpression(name) : undefined);
        }
      }}
    />
  );
}

/** Outputs of all nodes that do not run after this one. */
function Output(props: ISourceProps): JSX.Element {
  const { session, node } = useForm();
  const { trans } = session;
  const reference = wholeReference(props.value);
  const later = session.after(node!);
  const options = [...session.views.values()]
    .filter(view => !later.has(view.id))
    .flatMap(view =>
      view.outputs
        .filter(port => !port.isPath)
        .map(port => ({
          value: outputExpression(view.id, port.name),
          label: `${nameOf(session.document, view.id)} › ${port.name}`
        }))
    );
  return (
    <Select
      label={trans.__('Output')}
      value={
        reference?.kind === 'output'
          ? outputExpression(reference.node, reference.output)
          : ''
      }
      options={[
        {
          value: '',
          label: options.length
            ? trans.__('Choose…')
            : trans.__('No node before it produces an output')
        },
        ...options
      ]}
      onChange={value => props.set(value || undefined)}
    />
  );
}

/** The item of a loop around the node, or of its own. */
function Item(props: ISourceProps & { items: readonly string[] }): JSX.Element {
  const { trans } = useForm().session;
  const reference = wholeReference(props.value);
  return (
    <Select
      label={trans.__('Item of a loop')}
      value={reference?.kind === 'each' ? reference.name : ''}
      options={[
        { value: '', label: trans.__('Choose…') },
        ...props.items.map(name => ({ value: name, label: name }))
      ]}
      onChange={name => props.set(name ? itemExpression(name) : undefined)}
    />
  );
}

function FileValue(props: ISourceProps): JSX.Element {
  const { session } = useForm();
  const path =
    isObject(props.value) && typeof props.value.file === 'string'
      ? props.value.file
      : '';
  const pick = async () => {
    const [file] = await pickFiles(session);
    if (file) {
      props.set({ file });
    }
  };
  return (
    <div className="jp-Convect-listRow">
      <TextInput
        value={path}
        label={session.trans.__('File')}
        onChange={file => props.set({ file })}
      />
      <BrowseButton onClick={() => void pick()} />
    </div>
  );
}
