import * as React from 'react';

import { FormProvider } from '../../settings';
import { nodeForm } from '../form/nodeform';
import { isStep } from '../graph';
import type { Path } from '../model';
import type { Session } from '../session';
import { useSignal, useStore } from '../store';
import { CommentProperties, NodeProperties } from './NodeProperties';
import { PipelineProperties } from './PipelineProperties';
import { SeveralProperties } from './SeveralProperties';

/** The properties of what is selected, or of the pipeline when nothing is. */
export function Properties({ session }: { session: Session }): JSX.Element {
  const { trans } = session;
  const document = useSignal(session.doc.changed, () => session.document);
  const selection = useStore(session.state, state => state.selection);
  // Ports and problems come later than the document.
  useStore(session.files.store, state => state.found);
  const problems = useStore(session.checker.store, state => state.problems);
  const isReadOnly = useSignal(
    session.context.model.stateChanged,
    () => session.isReadOnly
  );
  const [id = null] = selection;
  const isNode = id !== null && id in document.nodes;
  const node = isNode ? id : null;

  const context = nodeForm(session, node, {
    isReadOnly,
    problems: problems.filter(problem => (problem.node ?? null) === node),
    isMixed: () => false,
    set: (path, value) => {
      const place = (
        node === null ? ['meta', ...path] : ['nodes', node, ...path]
      ) as Path;
      session.doc.edit(draft => draft.set(place, value), place.join('.'));
    }
  });
  const host = useJump(session);

  if (selection.size > 1) {
    const ids = [...selection].filter(item => isStep(document.nodes[item]));
    return ids.length > 1 ? (
      <div
        ref={host}
        className="jp-Convect-properties"
        tabIndex={-1}
        key={ids.join()}
      >
        <SeveralProperties
          session={session}
          ids={ids}
          isReadOnly={isReadOnly}
        />
      </div>
    ) : (
      <p className="jp-Convect-aside">
        {trans._n('%1 selected.', '%1 selected.', selection.size)}{' '}
        {trans.__('Select one node to see its properties.')}
      </p>
    );
  }
  return (
    <FormProvider value={context}>
      <div
        ref={host}
        className="jp-Convect-properties"
        tabIndex={-1}
        key={id ?? ''}
      >
        {isNode ? (
          <NodeProperties id={id} />
        ) : id !== null && document.comments?.[id] ? (
          <CommentProperties id={id} />
        ) : (
          <PipelineProperties />
        )}
      </div>
    </FormProvider>
  );
}

/** Bring the field that was asked for into view, and give it the keyboard. */
function useJump(session: Session): React.RefObject<HTMLDivElement> {
  const host = React.useRef<HTMLDivElement>(null);
  const jump = useStore(session.state, state => state.jump);
  React.useEffect(() => {
    if (!jump) {
      return;
    }
    let path = jump.path.map(String);
    let field: HTMLElement | null | undefined = null;
    while (path.length && !field) {
      field = host.current?.querySelector<HTMLElement>(
        `[data-path="${CSS.escape(path.join('.'))}"]`
      );
      path = path.slice(0, -1);
    }
    // Without a field it is the form that is read; what is typed by chance changes nothing.
    const target =
      field?.querySelector<HTMLElement>('input, select, textarea') ??
      host.current;
    field?.scrollIntoView({ block: 'center' });
    target?.focus({ preventScroll: true });
    if (target instanceof HTMLInputElement) {
      target.select();
    }
  }, [jump]);
  return host;
}
