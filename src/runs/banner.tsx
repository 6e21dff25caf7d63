import * as React from 'react';

import type { ITrouble } from '../api';
import { ConvectError, sentenceOf } from '../api';
import type { IRunStore } from '../tokens';
import { formatExact, translated, useModel, useTrans, Warning } from '../ui';

/** Says so while the server does not answer, or something of it does not work. */
export function ServerBanner(props: { runs: IRunStore }): JSX.Element {
  const { trouble, troubles } = useModel(props.runs);
  const trans = useTrans();
  return trouble !== null ? (
    <Warning>
      {trouble instanceof ConvectError && trouble.isLoggedOut
        ? sentenceOf(trouble)
        : trans.__('The server does not answer. Trying again…')}
    </Warning>
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
  const since = formatExact(props.since);
  return (
    <Warning
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
    </Warning>
  );
}
