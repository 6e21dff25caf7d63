import * as React from 'react';

import { commandOf } from './definition';
import type { IContainer } from './types';

/** The command of a container, one argument a line, the places that are filled in marked. */
export function Command({ container }: { container: IContainer }): JSX.Element {
  return (
    <pre className="jp-Convect-command" tabIndex={0}>
      {commandOf(container).map((pieces, index) => (
        <code key={index}>
          {pieces.map((piece, at) =>
            piece.isPlace ? (
              <var key={at}>{piece.text}</var>
            ) : (
              <React.Fragment key={at}>{piece.text}</React.Fragment>
            )
          )}
          {'\n'}
        </code>
      ))}
    </pre>
  );
}
