import { errorIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { ConvectError } from '../api';
import { ElyraPage } from './elyra';
import { VERSION } from './schema';
import type { IMalformed } from './serialize';
import type { Session } from './session';

/** The page in place of a canvas: what is wrong, where, and the way to mend it. */
export default function BrokenPage(props: {
  session: Session;
  malformed: IMalformed;
}): JSX.Element {
  return props.malformed.code === 'foreign-format' ? (
    <ElyraPage session={props.session} />
  ) : (
    <Broken {...props} />
  );
}

function Broken(props: {
  session: Session;
  malformed: IMalformed;
}): JSX.Element {
  const { session, malformed } = props;
  const { trans } = session;
  const sentence = useServerSentence(session, malformed);
  return (
    <div className="jp-Convect-notice" role="alert">
      <errorIcon.react tag="div" className="jp-Convect-pageIcon" />
      <h2>{trans.__('This file cannot be shown as a pipeline')}</h2>
      <p className="jp-Convect-message" data-severity="error">
        {sentence ?? reasonOf(session, malformed)}
      </p>
      <p>
        {malformed.code === 'newer-version'
          ? trans.__(
              'The file is left as it is. A newer version of jupyterlab-convect opens it.'
            )
          : trans.__(
              'The file is left as it is. Fix it in the text editor; this page updates when you save.'
            )}
      </p>
      <div className="jp-Convect-pageButtons">
        <button
          className="jp-mod-styled jp-mod-accept"
          onClick={() => session.openAsText()}
        >
          {trans.__('Open in the text editor')}
        </button>
        <button
          className="jp-mod-styled"
          onClick={() => void session.context.revert()}
        >
          {trans.__('Read it again')}
        </button>
      </div>
    </div>
  );
}

/** The server's parser knows line and column; the browser's may not. */
function useServerSentence(
  session: Session,
  malformed: IMalformed
): string | null {
  const [sentence, setSentence] = React.useState<string | null>(null);
  React.useEffect(() => {
    let isCurrent = true;
    setSentence(null);
    session.api.validate({ path: session.context.localPath }).catch(error => {
      if (isCurrent && error instanceof ConvectError && !error.isUnreachable) {
        setSentence(error.message);
      }
    });
    return () => {
      isCurrent = false;
    };
  }, [session, malformed]);
  return sentence;
}

function reasonOf(session: Session, malformed: IMalformed): string {
  const { trans } = session;
  const { code, detail } = malformed;
  switch (code) {
    case 'malformed-json':
      return trans.__('It is not valid JSON: %1', detail);
    case 'newer-version':
      return trans.__(
        'It has format version %1, but this version of jupyterlab-convect supports only versions up to %2.',
        detail,
        VERSION
      );
    case 'bad-version':
      return trans.__('The format version “convect” must be %1.', VERSION);
    case 'inexact-number':
      return trans.__(
        'The number %1 is too large for a browser to keep exactly.',
        detail
      );
    case 'foreign-format':
      return trans.__('It is a pipeline of another program.');
    case 'not-an-object':
      return detail
        ? trans.__('“%1” must be an object.', detail)
        : trans.__('A pipeline is a JSON object.');
  }
}
