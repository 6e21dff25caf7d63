import { notebookIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { addFiles } from '../actions';
import type { Session } from '../session';

/** What to do with an empty canvas. */
export function EmptyHint({ session }: { session: Session }): JSX.Element {
  const { trans } = session;
  return (
    <div className="jp-Convect-emptyCanvas">
      <notebookIcon.react tag="div" className="jp-Convect-emptyIcon" />
      <h3>{trans.__('Drag notebooks or scripts here')}</h3>
      <p>
        {trans.__(
          'Take them from the file browser, several at once if you like, then connect them: what is connected runs one after the other, all else in parallel.'
        )}
      </p>
      {!session.isReadOnly && (
        <button
          className="jp-mod-styled jp-mod-accept"
          onClick={() => void addFiles(session)}
        >
          {trans.__('Choose files…')}
        </button>
      )}
    </div>
  );
}
