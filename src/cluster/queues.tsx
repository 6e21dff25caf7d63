import * as React from 'react';

import type { IOverview, IQueueOverview } from '../api';
import { CommandIDs } from '../commands';
import type { Execute } from '../ui';
import { useTrans } from '../ui';
import { Bar } from './bars';
import { Hidden, Tile } from './tile';
import { amountText, resourceLabel, waitText } from './words';

/** The queues of a namespace: who waits where, for how long, and what their group shares. */
export function Queues(props: {
  overview: IOverview;
  execute: Execute;
}): JSX.Element | null {
  const { overview, execute } = props;
  const trans = useTrans();
  const { queues } = overview;
  if (queues?.length === 0) {
    return null;
  }
  return (
    <Tile title={trans.__('Queues')}>
      <Hidden overview={overview} parts={['queues', 'limits', 'workloads']} />
      {queues?.map(queue => (
        <Queue key={queue.name} queue={queue} execute={execute} />
      ))}
    </Tile>
  );
}

function Queue(props: {
  queue: IQueueOverview;
  execute: Execute;
}): JSX.Element {
  const { queue, execute } = props;
  const trans = useTrans();
  const { name, closed, waiting, admitted, group, cohort, wait } = queue;
  const expected = waitText(wait, trans);
  return (
    <section
      className="jp-Convect-queue"
      aria-label={trans.__('Queue %1', name)}
      data-queue={name}
    >
      <h4>{name}</h4>
      {closed && (
        <div className="jp-Convect-message" data-severity="warning">
          {trans.__('It admits no workloads at the moment: %1', closed)}
        </div>
      )}
      <p>
        {trans._n('%1 waits', '%1 wait', waiting)} ·{' '}
        {trans._n('%1 is admitted', '%1 are admitted', admitted)}
        {expected &&
          ` · ${trans.__('what is submitted now waits %1', expected)}`}
      </p>
      {waiting > 0 && !wait && queue.workloads !== null && (
        <p className="jp-Convect-quiet">
          {trans.__(
            'There are too few admissions for an estimate of how long it takes.'
          )}
        </p>
      )}
      {wait && (
        <p className="jp-Convect-quiet">
          {trans._n(
            'Estimated from %1 admission.',
            'Estimated from %1 admissions.',
            wait.samples
          )}
        </p>
      )}
      {queue.workloads && queue.workloads.length > 0 && (
        <ol className="jp-Convect-workloads">
          {queue.workloads.map(each => (
            <li key={each.name} value={each.position} data-run={each.run ?? ''}>
              {each.run ? (
                <button
                  type="button"
                  className="jp-Convect-link"
                  onClick={() => execute(CommandIDs.openRun, { run: each.run })}
                >
                  {trans.__('My run %1', each.run)}
                </button>
              ) : (
                each.name
              )}{' '}
              <span className="jp-Convect-quiet">
                {waitText(each.wait, trans)}
              </span>
            </li>
          ))}
        </ol>
      )}
      {queue.limits && queue.limits.length > 0 && (
        <>
          <h5>
            {cohort
              ? trans.__('Quota of group %1, in cohort %2', group ?? '', cohort)
              : trans.__('Quota of group %1', group ?? '')}
          </h5>
          {queue.limits.map(limit => (
            <div key={`${limit.flavor} ${limit.resource}`}>
              <Bar
                name={limit.resource}
                label={`${resourceLabel(limit.resource, trans)} (${limit.flavor})`}
                total={limit.total}
                free={Math.max(limit.total - limit.used, 0)}
              />
              <div className="jp-Convect-quiet">
                {[
                  limit.mine > 0 &&
                    trans.__(
                      '%1 through this queue',
                      amountText(limit.resource, limit.mine)
                    ),
                  limit.borrowing === null && trans.__('more can be borrowed'),
                  limit.borrowing !== null &&
                    limit.borrowing > 0 &&
                    trans.__(
                      'up to %1 more can be borrowed',
                      amountText(limit.resource, limit.borrowing)
                    )
                ]
                  .filter(Boolean)
                  .join(' · ')}
              </div>
            </div>
          ))}
        </>
      )}
    </section>
  );
}
