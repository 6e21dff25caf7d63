import { Notification } from '@jupyterlab/apputils';
import { Panel } from '@xyflow/react';
import * as React from 'react';

import { sentenceOf } from '../../api';
import type { Session } from '../session';
import { useStore } from '../store';
import { useCanvas } from './context';

/** What there is to know about the file: it cannot be written, or has changed outside. */
export function Banner({ session }: { session: Session }): JSX.Element | null {
  const { trans } = session;
  const { isReadOnly } = useCanvas();
  const isChangedOutside = useStore(
    session.state,
    state => state.isChangedOutside
  );
  if (isChangedOutside) {
    return (
      <Panel position="top-center" className="jp-Convect-banner" role="alert">
        <span className="jp-Convect-bannerText">
          {trans.__(
            'The file was changed outside of this editor, and you have changes that are not saved.'
          )}
        </span>
        <button
          className="jp-mod-styled jp-mod-accept"
          onClick={() => void session.reload()}
        >
          {trans.__('Take over the file')}
        </button>
        <button
          className="jp-mod-styled"
          onClick={() => session.state.update({ isChangedOutside: false })}
        >
          {trans.__('Keep mine')}
        </button>
      </Panel>
    );
  }
  return isReadOnly ? (
    <Panel position="top-center" className="jp-Convect-banner" role="status">
      <span className="jp-Convect-bannerText">
        {trans.__(
          'You cannot write this file, so nothing can be changed here.'
        )}
      </span>
      <button
        className="jp-mod-styled"
        onClick={() => void session.context.saveAs().catch(tellError)}
      >
        {trans.__('Save a copy as…')}
      </button>
    </Panel>
  ) : null;
}

function tellError(error: unknown): void {
  Notification.error(sentenceOf(error));
}
