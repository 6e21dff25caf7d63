import { Panel } from '@xyflow/react';
import * as React from 'react';

import type { Session } from '../session';
import { useStore } from '../store';

/** The file has changed outside: what to do about it. */
export function Banner({ session }: { session: Session }): JSX.Element | null {
  const { trans } = session;
  const isChangedOutside = useStore(
    session.state,
    state => state.isChangedOutside
  );
  if (!isChangedOutside) {
    return null;
  }
  return (
    <Panel position="top-center" className="jp-Pipeline-banner" role="alert">
      <span className="jp-Pipeline-bannerText">
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
