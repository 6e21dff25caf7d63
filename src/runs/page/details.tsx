import type { ReadonlyJSONValue } from '@lumino/coreutils';
import * as React from 'react';

import type { IAttempt, IPlanStep, IRunView, IStep } from '../../api';
import { useTrans } from '../../ui';

/** Where a step ran and how: what was asked of the runtime, and what it made of it. */
export function Details(props: {
  view: IRunView;
  planned: IPlanStep;
  step: IStep;
  attempt: IAttempt | undefined;
}): JSX.Element {
  const { view, planned, step, attempt } = props;
  const trans = useTrans();
  const { git } = view;
  const rows: [string, ReadonlyJSONValue | undefined | null][] = [
    [trans.__('Run'), view.id],
    [trans.__('Runtime'), view.runtime],
    [trans.__('File'), planned.path],
    [trans.__('Command'), planned.command?.join(' ')],
    [trans.__('Image'), planned.image],
    [trans.__('Kernel'), planned.kernel],
    [trans.__('Resources'), planned.resources],
    [trans.__('Environment variables'), planned.env],
    [trans.__('Working folder'), planned.working_folder as string | undefined],
    [trans.__('Timeout (seconds)'), planned.timeout],
    [trans.__('Reuse'), step.cache],
    [trans.__('User'), view.user],
    [
      trans.__('Git commit'),
      git &&
        `${git.commit.slice(0, 12)} ${git.branch ?? ''} ${git.dirty ? trans.__('(with uncommitted changes)') : ''}`
    ],
    [trans.__('Digest of the source'), planned.digest],
    [trans.__('Reason in the words of the runtime'), attempt?.detail],
    [trans.__('Found again by'), attempt?.handle]
  ];
  const filled = rows.filter(
    ([, value]) =>
      value !== undefined &&
      value !== null &&
      value !== '' &&
      !(typeof value === 'object' && Object.keys(value).length === 0)
  );
  return (
    <table className="jp-ConvectRuns-table">
      <tbody>
        {filled.map(([name, value]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>
              {typeof value === 'string' ? (
                <code>{value}</code>
              ) : (
                <pre>{JSON.stringify(value, null, 2)}</pre>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
