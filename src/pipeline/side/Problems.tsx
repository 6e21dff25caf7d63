import { errorIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IProblem } from '../../api';
import { translated } from '../../ui/sentences';
import { nameOf } from '../graph';
import type { Session } from '../session';
import { useStore } from '../store';
import { takeSuggestion, suggestionFor } from '../suggestion';

/** Everything that is wrong; a click goes to the place. */
export function Problems({ session }: { session: Session }): JSX.Element {
  const { trans } = session;
  const { problems, isStale } = useStore(session.checker.store, state => state);
  const selection = useStore(session.state, state => state.selection);
  return (
    <>
      {isStale && (
        <p className="jp-Convect-aside">
          {trans.__(
            'The server does not answer, so this may be out of date. Nothing you do is lost.'
          )}
        </p>
      )}
      {problems.length === 0 && !isStale && (
        <p className="jp-Convect-aside">{trans.__('No problems.')}</p>
      )}
      <ul className="jp-Convect-problems">
        {problems.map((problem, index) => (
          <li key={index}>
            <button
              className={`jp-Convect-problem jp-mod-${problem.severity}${
                selection.has(problem.node ?? '') ? ' jp-mod-current' : ''
              }`}
              onClick={() => goTo(session, problem)}
            >
              <errorIcon.react tag="span" />
              <div>
                {problem.node && (
                  <b>{nameOf(session.document, problem.node)}: </b>
                )}
                {translated(problem.message, trans)}
                {problem.hint && (
                  <div className="jp-Convect-aside">
                    {translated(problem.hint, trans)}
                  </div>
                )}
              </div>
            </button>
            <Mend session={session} problem={problem} />
          </li>
        ))}
      </ul>
    </>
  );
}

/** Does what the hint suggests. */
function Mend(props: {
  session: Session;
  problem: IProblem;
}): JSX.Element | null {
  const { session, problem } = props;
  const found = session.isReadOnly
    ? null
    : suggestionFor(session.document, problem);
  return (
    found && (
      <button
        className="jp-Convect-link"
        onClick={() => takeSuggestion(session.doc, found)}
      >
        {session.trans.__('Change it to “%1”', found.text)}
      </button>
    )
  );
}

function goTo(session: Session, problem: IProblem): void {
  const id = problem.node ?? null;
  session.showProperties(id, problem.path ?? []);
  if (id !== null) {
    session.canvas?.reveal(id);
  }
}
