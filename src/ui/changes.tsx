import * as React from 'react';

import '../../style/changes.css';

import type { ISourceChange } from '../api';
import { useTrans } from './hooks';
import { Select } from './inputs';
import { lazy } from './lazy';

const TextDiff = lazy(() => import('./textdiff'));

/** How files of another day differ from those of today, one file at a time. */
export function Changes(props: {
  changes: readonly ISourceChange[];
  /** What the files of that day are called. */
  before: string;
  /** What is said where such a file is not kept any more. */
  lost: string;
}): JSX.Element {
  const { changes, before, lost } = props;
  const trans = useTrans();
  const [path, setPath] = React.useState(changes[0].path);
  const change = changes.find(each => each.path === path) ?? changes[0];
  return (
    <div className="jp-Convect-changes">
      {changes.length > 1 ? (
        <Select
          label={trans.__('File')}
          value={change.path}
          options={changes.map(each => ({
            value: each.path,
            label: each.path
          }))}
          onChange={setPath}
        />
      ) : (
        <code>{change.path}</code>
      )}
      {change.before === null || change.after === null ? (
        <div className="jp-Convect-hint">
          {change.after === null
            ? trans.__('The file no longer exists.')
            : lost}
        </div>
      ) : (
        <>
          <div className="jp-Convect-sides">
            <span>{before}</span>
            <span>{trans.__('Today’s files')}</span>
          </div>
          <React.Suspense fallback={null}>
            <TextDiff left={change.before} right={change.after} />
          </React.Suspense>
        </>
      )}
    </div>
  );
}
