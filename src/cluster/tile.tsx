import * as React from 'react';

import type { IOverview } from '../api';
import { translated, useTrans } from '../ui';

type Part = IOverview['hidden'][number]['part'];

/** One subject of the page. */
export function Tile(props: {
  title: string;
  children: React.ReactNode;
}): JSX.Element {
  const { title, children } = props;
  return (
    <section className="jp-Convect-subject" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** What of a subject must not be seen, and the rule that an administrator could add. */
export function Hidden(props: {
  overview: IOverview;
  parts: readonly Part[];
}): JSX.Element | null {
  const { overview, parts } = props;
  const trans = useTrans();
  const hidden = overview.hidden.filter(({ part }) => parts.includes(part));
  return hidden.length === 0 ? null : (
    <>
      {hidden.map(({ part, sentence, rule, scope }) => (
        <details key={part} className="jp-Convect-hidden">
          <summary>{translated(sentence, trans)}</summary>
          <p>
            {scope === 'cluster'
              ? trans.__('This rule of a ClusterRole would show it:')
              : trans.__('This rule of a Role would show it:')}
          </p>
          <pre tabIndex={0} aria-label={trans.__('Rule')}>
            {rule}
          </pre>
        </details>
      ))}
    </>
  );
}
