import { closeIcon, editIcon, refreshIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import '../../style/catalog.css';
import { sentenceOf } from '../api';
import type { Execute } from '../ui';
import { Action, Ago, useModel, useTrans } from '../ui';
import { CatalogCommands } from './ids';
import type { CatalogModel } from './model';
import { nameOf } from './names';
import type { ICatalog } from './types';

/** Where components come from, and what can be done about it. */
export default function CatalogsView(props: {
  model: CatalogModel;
  execute: Execute;
}): JSX.Element {
  const { execute } = props;
  const model = useModel(props.model);
  const trans = useTrans();
  const hasOwn = model.catalogs.some(catalog => catalog.kind !== 'shipped');
  return (
    <>
      <ul className="jp-Convect-catalogs" aria-label={trans.__('Catalogs')}>
        {model.catalogs.map(catalog => (
          <CatalogItem
            key={catalog.id}
            catalog={catalog}
            execute={execute}
            onErrors={() => model.reveal(catalog.id, 'errors')}
          />
        ))}
      </ul>
      {model.isReady && !hasOwn && (
        <div className="jp-Convect-hint">
          <p>
            {trans.__(
              'Add components of your own: any Kubeflow component by its address, a file, or a folder.'
            )}
          </p>
          <button
            className="jp-Convect-action"
            onClick={() => execute(CatalogCommands.newCatalog, { kind: 'url' })}
          >
            {trans.__('New URL Component Catalog')}
          </button>
        </div>
      )}
    </>
  );
}

function CatalogItem(props: {
  catalog: ICatalog;
  execute: Execute;
  /** Show the components that could not be read. */
  onErrors: () => void;
}): JSX.Element {
  const { catalog, execute, onErrors } = props;
  const trans = useTrans();
  const { id, progress } = catalog;
  const name = nameOf(catalog, trans);
  const act = (command: string) => () => execute(command, { catalog: id });
  return (
    <li
      className={
        catalog.counts.updates > 0
          ? 'jp-Convect-catalog jp-mod-updates'
          : 'jp-Convect-catalog'
      }
      data-catalog={id}
    >
      <div className="jp-Convect-rowLine">
        <span className="jp-Convect-rowName">{name}</span>
        {catalog.counts.updates > 0 && (
          <button
            className="jp-Convect-tag jp-mod-update"
            onClick={act(CatalogCommands.showUpdates)}
          >
            {trans._n('%1 update', '%1 updates', catalog.counts.updates)}
          </button>
        )}
        {catalog.kind !== 'shipped' && (
          <span className="jp-Convect-actions">
            <Action
              icon={refreshIcon}
              label={trans.__('Refresh %1', name)}
              disabled={!!progress}
              onClick={act(CatalogCommands.refreshCatalog)}
            />
            <Action
              icon={editIcon}
              label={trans.__('Configure %1', name)}
              onClick={act(CatalogCommands.editCatalog)}
            />
            <Action
              icon={closeIcon}
              label={trans.__('Remove %1', name)}
              onClick={act(CatalogCommands.removeCatalog)}
            />
          </span>
        )}
      </div>
      {progress ? (
        <Progress {...progress} name={name} />
      ) : (
        <div className="jp-Convect-rowDetail">
          {trans._n('%1 component', '%1 components', catalog.counts.components)}
          {catalog.counts.errors > 0 && (
            <button className="jp-Convect-link jp-mod-error" onClick={onErrors}>
              {trans._n('%1 error', '%1 errors', catalog.counts.errors)}
            </button>
          )}
          {catalog.kind !== 'shipped' && catalog.refreshed && (
            <Ago time={catalog.refreshed} />
          )}
        </div>
      )}
      {catalog.error && (
        <div className="jp-Convect-message" data-severity="error" role="alert">
          {sentenceOf(catalog.error.message)}{' '}
          {sentenceOf(catalog.error.hint ?? '')}
        </div>
      )}
    </li>
  );
}

function Progress(props: {
  done: number;
  total: number;
  name: string;
}): JSX.Element {
  const { done, total, name } = props;
  const trans = useTrans();
  return (
    <div className="jp-Convect-progress">
      <progress
        value={done || undefined}
        max={Math.max(1, total)}
        aria-label={trans.__('Import of %1', name)}
      />
      {done > 0 && <span>{trans.__('%1 of %2', done, total)}</span>}
    </div>
  );
}
