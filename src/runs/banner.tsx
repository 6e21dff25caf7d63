import * as React from 'react';

import type { ITrouble } from '../api';
import { translated, useModel, useTrans } from '../ui';
import type { RunStore } from './store';

/** Says so while the server does not answer, or something of it does not work. */
export function ServerBanner(props: { runs: RunStore }): JSX.Element {
  const { isUnreachable, troubles } = useModel(props.runs);
  const trans = useTrans();
  return isUnreachable ? (
    <div className="jp-ConvectRuns-banner" role="status">
      {trans.__('The server does not answer. Trying again…')}
    </div>
  ) : (
    <>
      {troubles.map(trouble => (
        <TroubleBanner key={trouble.name} {...trouble} />
      ))}
    </>
  );
}

function TroubleBanner(props: ITrouble): JSX.Element {
  const trans = useTrans();
  const since = new Date(props.since * 1000).toLocaleString();
  return (
    <div
      className="jp-ConvectRuns-banner"
      role="status"
      title={trans._n(
        'Since %2, after %1 try',
        'Since %2, after %1 tries',
        props.tries,
        since
      )}
    >
      {trans.__(
        '%1 failed: %2 Trying again…',
        translated(props.name, trans),
        translated(props.sentence, trans)
      )}
    </div>
  );
}
