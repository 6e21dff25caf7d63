import * as React from 'react';

import '../../style/catalog.css';
import { Empty, Failure, SearchInput, useModel, useTrans } from '../ui';
import { componentIcon } from './icons';
import type { IListActions } from './list';
import { ComponentList } from './list';
import type { CatalogModel } from './model';

const LIST = 'jp-convect-component-list';

/** Search, and the components that are found. */
export default function ComponentsView(props: {
  model: CatalogModel;
  actions: IListActions;
}): JSX.Element {
  const model = useModel(props.model);
  const trans = useTrans();
  const isEmpty = model.isReady && model.entries.length === 0;
  const focusList = () => document.getElementById(LIST)?.focus();
  return (
    <>
      <div className="jp-Convect-filters" role="search">
        <SearchInput
          placeholder={trans.__('Search components')}
          label={trans.__('Search components by name, description and inputs')}
          aria-controls={LIST}
          value={model.text}
          onChange={text => model.search(text)}
          onKeyDown={event => {
            if (event.key === 'ArrowDown') {
              event.preventDefault();
              focusList();
            } else if (event.key === 'Enter') {
              const row = model.rows[model.cursor];
              if (row?.kind === 'component' && model.text.trim()) {
                props.actions.add(row.entry);
              }
            } else if (event.key === 'Escape' && model.text) {
              event.preventDefault();
              event.stopPropagation();
              model.search('');
            }
          }}
        />
      </div>
      <Failure error={model.error} />
      {!model.isReady && !model.error && (
        <div className="jp-Convect-hint">{trans.__('Loading…')}</div>
      )}
      {isEmpty && <Welcome />}
      {model.isReady && !isEmpty && model.rows.length === 0 && (
        <div className="jp-Convect-hint">
          {trans.__(
            'No component matches “%1”. Search for something else, or add a catalog that has it below.',
            model.text.trim()
          )}
        </div>
      )}
      {model.rows.length > 0 && (
        <ComponentList id={LIST} model={model} actions={props.actions} />
      )}
      <div className="jp-Convect-total" role="status">
        {model.isReady &&
          trans._n('%1 component', '%1 components', model.found)}
      </div>
    </>
  );
}

function Welcome(): JSX.Element {
  const trans = useTrans();
  return (
    <Empty icon={componentIcon} title={trans.__('No components yet')}>
      {trans.__(
        'Add a catalog below: the address of a Kubeflow component, a list of addresses, a file or a folder. Then drag components onto a pipeline.'
      )}
    </Empty>
  );
}
