import { Panel, useConnection } from '@xyflow/react';
import * as React from 'react';

import { nameOf } from '../graph';
import type { Session } from '../session';
import { useStore } from '../store';
import { refusal } from './connections';

/** Says, while a connection is drawn, why it cannot end here. */
export function ConnectionHint({
  session
}: {
  session: Session;
}): JSX.Element | null {
  const { trans } = session;
  const ends = useConnection(connection => {
    if (!connection.inProgress || !connection.toHandle) {
      return '';
    }
    const { fromHandle, toHandle } = connection;
    const [out, into] =
      fromHandle.type === 'source'
        ? [fromHandle, toHandle]
        : [toHandle, fromHandle];
    return JSON.stringify([out.nodeId, out.id, into.nodeId, into.id]);
  });
  const connecting = useStore(session.state, state => state.connecting);

  const reason = React.useMemo(() => {
    if (!ends) {
      return null;
    }
    const [source, sourceHandle, target, targetHandle] = JSON.parse(ends);
    return refusal(
      session.document,
      session.edges,
      { source, sourceHandle, target, targetHandle },
      trans
    );
  }, [ends, session, trans]);

  React.useEffect(() => {
    if (reason) {
      session.announce(reason);
    }
  }, [reason, session]);

  const text =
    reason ??
    (connecting === null
      ? null
      : trans.__(
          'Connecting “%1”: go to the node that runs after it and press Enter, or Escape to cancel.',
          nameOf(session.document, connecting)
        ));
  return text === null ? null : (
    <Panel
      position="bottom-center"
      className={`jp-Convect-connectionHint${reason ? ' jp-mod-refused' : ''}`}
    >
      {text}
    </Panel>
  );
}
