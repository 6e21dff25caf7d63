import * as React from 'react';

import { useModel, useTrans } from '../ui';
import type { RunsModel } from './model';

/** Says so while the server does not answer. */
export function ServerBanner(props: { runs: RunsModel }): JSX.Element | null {
  const { isUnreachable } = useModel(props.runs);
  const trans = useTrans();
  return isUnreachable ? (
    <div className="jp-ConvectRuns-banner" role="status">
      {trans.__('The server does not answer. Trying again…')}
    </div>
  ) : null;
}
