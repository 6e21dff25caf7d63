import * as React from 'react';

import type { IConnectionTest } from '../../api';
import { sentenceOf } from '../../api';
import { translated, useTrans } from '../../ui';
import type { RunForm } from './form';

/** Goes to the server of the runtime step by step, and names the step that fails. */
export function Connection({ form }: { form: RunForm }): JSX.Element {
  const trans = useTrans();
  const [isAsking, setAsking] = React.useState(false);
  const [found, setFound] = React.useState<IConnectionTest | null>(null);
  const [failure, setFailure] = React.useState<string | null>(null);
  const names = {
    address: trans.__('Address'),
    'sign-in': trans.__('Sign-in'),
    namespace: trans.__('Namespace')
  };
  const test = async () => {
    setAsking(true);
    try {
      setFound(await form.testConnection());
      setFailure(null);
    } catch (error) {
      setFailure(sentenceOf(error));
    } finally {
      setAsking(false);
    }
  };
  return (
    <div className="jp-Convect-connection">
      <button
        type="button"
        className="jp-mod-styled"
        disabled={isAsking}
        onClick={() => void test()}
      >
        {trans.__('Test Connection')}
      </button>
      <div role="status">
        <ul>
          {isAsking && <li>{trans.__('Asking the server…')}</li>}
          {!isAsking && failure !== null && (
            <li className="jp-Convect-message" data-severity="error">
              {failure}
            </li>
          )}
          {!isAsking &&
            failure === null &&
            found?.steps.map(({ step, ok, message, hint }) => (
              <li key={step} data-ok={ok}>
                <span aria-hidden>{ok ? '✓' : '✗'}</span>{' '}
                <strong>{names[step]}</strong> {translated(message, trans)}
                {hint && ` ${translated(hint, trans)}`}
              </li>
            ))}
        </ul>
      </div>
    </div>
  );
}
