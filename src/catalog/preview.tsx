import { addIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import '../../style/catalog.css';
import { sentenceOf } from '../api';
import { Failure, formatValue, useModel, useTrans } from '../ui';
import { Command } from './command';
import type { CatalogModel } from './model';
import { nameOf } from './names';
import type { IComponent, IEnd, IEntry, IReadingError } from './types';

export interface IPreviewActions {
  add: (entry: IEntry) => void;
  approve: (entry: IEntry) => void;
  showUpdates: (entry: IEntry) => void;
}

/** All there is to know about the component that is looked at. */
export default function PreviewView(props: {
  model: CatalogModel;
  actions: IPreviewActions;
}): JSX.Element {
  const { actions } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const { preview } = model;
  if (!preview) {
    return (
      <div className="jp-Convect-hint">
        {trans.__(
          'Choose a component to see what it takes, gives and runs. Drag it onto a pipeline, or press Enter to add it.'
        )}
      </div>
    );
  }
  const { entry, component, error } = preview;
  return (
    <article
      className="jp-Convect-preview"
      aria-label={entry.name}
      aria-busy={!!entry.digest && !component && !error}
    >
      <h2>{sentenceOf(entry.name)}</h2>
      {entry.error && (
        <Trouble error={entry.error} isPinned={entry.digest !== ''} />
      )}
      {entry.digest && (
        <div className="jp-Convect-buttons">
          <button
            className="jp-mod-styled jp-mod-accept"
            onClick={() => actions.add(entry)}
          >
            <addIcon.react tag="span" stylesheet="toolbarButton" />
            {trans.__('Add to pipeline')}
          </button>
          {entry.update && (
            <button
              className="jp-mod-styled"
              onClick={() => actions.showUpdates(entry)}
            >
              {trans.__('Show update…')}
            </button>
          )}
        </div>
      )}
      {entry.gone && (
        <p className="jp-Convect-aside">
          {trans.__(
            'It is no longer where it came from. What is stored here keeps working.'
          )}
        </p>
      )}
      <Failure error={error} />
      {component && (
        <Details
          entry={entry}
          component={component}
          catalog={nameOf(model.catalog(entry.catalog), trans)}
        />
      )}
      {component && (
        <Approval
          component={component}
          isOurs={entry.catalog === 'shipped'}
          onChange={() => actions.approve(entry)}
        />
      )}
    </article>
  );
}

/** File, line and reason of what could not be read. */
function Trouble(props: {
  error: IReadingError;
  isPinned: boolean;
}): JSX.Element {
  const { error, isPinned } = props;
  const trans = useTrans();
  return (
    <div className="jp-Convect-message" data-severity="error" role="alert">
      <p>
        {isPinned
          ? trans.__(
              'It could not be read again. What is stored here keeps working.'
            )
          : trans.__('It could not be read.')}
      </p>
      <dl>
        {error.file && (
          <>
            <dt>{trans.__('File')}</dt>
            <dd>{error.file}</dd>
          </>
        )}
        {!!error.line && (
          <>
            <dt>{trans.__('Line')}</dt>
            <dd>{error.line}</dd>
          </>
        )}
        <dt>{trans.__('Reason')}</dt>
        <dd>{sentenceOf(error.message)}</dd>
      </dl>
      {error.hint && <p>{sentenceOf(error.hint)}</p>}
    </div>
  );
}

function Details(props: {
  entry: IEntry;
  component: IComponent;
  catalog: string;
}): JSX.Element {
  const { entry, component, catalog } = props;
  const trans = useTrans();
  const { container } = component.definition;
  const digest = entry.digest.replace('sha256:', '');
  return (
    <>
      {component.description && (
        <p className="jp-Convect-description">
          {sentenceOf(component.description.trim())}
        </p>
      )}
      {component.unsupported.map(sentence => (
        <p
          key={sentence}
          className="jp-Convect-message"
          data-severity="warning"
        >
          {sentenceOf(sentence)}
        </p>
      ))}
      <Ends
        title={trans.__('Inputs')}
        none={trans.__('It takes nothing.')}
        ends={component.inputs}
      />
      <Ends
        title={trans.__('Outputs')}
        none={trans.__('It gives nothing.')}
        ends={component.outputs}
      />
      {container && (
        <section>
          <h3>{trans.__('Image')}</h3>
          <p className="jp-Convect-code">{container.image}</p>
          <h3>{trans.__('Command')}</h3>
          <Command container={container} />
        </section>
      )}
      {component.tasks.length > 0 && (
        <section>
          <h3>{trans.__('Steps')}</h3>
          <ol className="jp-Convect-tasks">
            {component.tasks.map(task => (
              <li key={task.name}>
                {task.component === task.name
                  ? task.name
                  : `${task.name} (${task.component})`}
                {task.replaces && (
                  <div className="jp-Convect-hint">
                    {trans.__(
                      'Read from %1 instead of %2; its digest was not checked.',
                      task.source,
                      task.replaces
                    )}
                  </div>
                )}
              </li>
            ))}
          </ol>
        </section>
      )}
      <section>
        <dl className="jp-Convect-definitions">
          <dt>{trans.__('Catalog')}</dt>
          <dd>{catalog}</dd>
          <dt>{trans._p('component', 'Source')}</dt>
          <dd>{entry.source}</dd>
          <dt>{trans.__('Digest')}</dt>
          <dd className="jp-Convect-code" title={entry.digest}>
            {digest}
          </dd>
        </dl>
      </section>
    </>
  );
}

function Ends(props: {
  title: string;
  none: string;
  ends: readonly IEnd[];
}): JSX.Element {
  const { title, none, ends } = props;
  const trans = useTrans();
  return (
    <section>
      <h3>{title}</h3>
      {ends.length === 0 && <p className="jp-Convect-aside">{none}</p>}
      <ul className="jp-Convect-ends">
        {ends.map(end => (
          <li key={end.name}>
            <span className="jp-Convect-rowLine">
              <b>{end.name}</b>
              <span className="jp-Convect-type">{end.type}</span>
              {end.required && (
                <span className="jp-Convect-tag jp-mod-required">
                  {trans.__('required')}
                </span>
              )}
              {end.passed === 'file' && (
                <span className="jp-Convect-tag">{trans.__('file')}</span>
              )}
            </span>
            {(end.default ?? null) !== null && (
              <span className="jp-Convect-default">
                {trans.__('Default:')} <code>{formatValue(end.default)}</code>
              </span>
            )}
            {end.description && (
              <span className="jp-Convect-aside">
                {sentenceOf(end.description)}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Approval(props: {
  component: IComponent;
  /** It ships with the product, which approves it. */
  isOurs: boolean;
  onChange: () => void;
}): JSX.Element {
  const { component, isOurs, onChange } = props;
  const { approved, contained, packages } = component;
  const trans = useTrans();
  return (
    <section>
      <h3>{trans.__('Without a container')}</h3>
      <p className="jp-Convect-aside">
        {contained
          ? trans.__('This machine runs it in a container.')
          : approved
            ? trans.__(
                'This machine has no podman or docker: it runs as a plain process, not contained.'
              )
            : trans.__(
                'This machine has no podman or docker: it does not run here before you approve its command.'
              )}
      </p>
      {packages.length > 0 && (
        <p className="jp-Convect-aside">
          {trans.__('It then needs the packages %1.', packages.join(', '))}
        </p>
      )}
      {!isOurs && (
        <button className="jp-mod-styled" onClick={onChange}>
          {approved ? trans.__('Withdraw approval…') : trans.__('Approve…')}
        </button>
      )}
    </section>
  );
}
