import * as React from 'react';

import { Form, FormProvider } from '../../settings';
import { nodeForm } from '../form/nodeform';
import { nameOf } from '../graph';
import type { Json } from '../schema';
import { isObject } from '../serialize';
import { areSame, changed, common, valueAt } from '../several';
import type { Session } from '../session';
import { useStore } from '../store';

/** The settings of several nodes at once; a change reaches all of them. */
export function SeveralProperties(props: {
  session: Session;
  ids: readonly string[];
  isReadOnly: boolean;
}): JSX.Element {
  const { session, ids, isReadOnly } = props;
  const { trans, document } = session;
  const problems = useStore(session.checker.store, state => state.problems);
  const nodes = ids.map(id => document.nodes[id] as unknown as Json);
  const shown = settingsOf(common(nodes));
  const context = nodeForm(session, null, {
    isReadOnly,
    problems: problems.filter(problem => ids.includes(problem.node ?? '')),
    isMixed: path => !areSame(nodes.map(node => valueAt(node, path))),
    set: (path, next) =>
      session.doc.edit(
        draft => {
          ids.forEach((id, index) => {
            const own = valueAt(nodes[index], path);
            const value = changed(own, valueAt(shown, path), next);
            draft.set(
              ['nodes', id, ...path],
              isEmpty(value) ? undefined : value
            );
          });
        },
        [...ids, ...path].join('.')
      )
  });
  return (
    <FormProvider value={context}>
      <h2 className="jp-Convect-formTitle">
        {trans._n('%1 node', '%1 nodes', ids.length)}
      </h2>
      <p className="jp-Convect-aside">
        {trans.__(
          'What is changed here changes in all of them: %1.',
          ids.map(id => nameOf(document, id)).join(', ')
        )}
      </p>
      <Form definition="settings" value={shown} inherited={document.defaults} />
    </FormProvider>
  );
}

/** Parameters and inputs are those of one file or component. */
function settingsOf(value: Json | undefined): { [key: string]: Json } {
  const settings = isObject(value) ? { ...value } : {};
  delete settings.kind;
  return settings;
}

function isEmpty(value: Json | undefined): boolean {
  return (
    typeof value === 'object' && value !== null && !Object.keys(value).length
  );
}
