import * as React from 'react';

import type { IOverview } from '../api';
import { CommandIDs } from '../commands';
import type { Execute } from '../ui';
import { Action, translated, useTrans } from '../ui';
import { Tile } from './tile';
import { offerTitle, requestText } from './words';

/** The largest request of each profile that would start at once. */
export function Offers(props: {
  runtime: string;
  overview: IOverview;
  execute: Execute;
}): JSX.Element | null {
  const { runtime, overview, execute } = props;
  const trans = useTrans();
  if (overview.offers.length === 0) {
    return null;
  }
  return (
    <Tile title={trans.__('What could I start now?')}>
      <ul className="jp-Convect-offers">
        {overview.offers.map(offer => {
          const { title, settings, now, notes, node, sentence } = offer;
          const text = requestText(settings, trans);
          const isPossible = Object.keys(settings).length > 0;
          const name = offer.profile ?? offerTitle(title, trans);
          return (
            <li key={title} data-now={String(now)}>
              <strong>{name}</strong>
              <span className="jp-Convect-offerText">
                {isPossible
                  ? now === null
                    ? trans.__('perhaps %1', text)
                    : trans.__('up to %1', text)
                  : trans.__('nothing')}
                {node && runtime !== 'local' && (
                  <span className="jp-Convect-quiet">
                    {' '}
                    {trans.__('on %1', node)}
                  </span>
                )}
              </span>
              {isPossible && (
                <Action
                  label={trans.__('Run…')}
                  title={trans.__('Open the run dialog with %1', text)}
                  onClick={() =>
                    execute(CommandIDs.runAsPipeline, { runtime, settings })
                  }
                />
              )}
              {(sentence || notes) && (
                <span className="jp-Convect-quiet jp-Convect-offerWhy">
                  {sentence && translated(sentence, trans)}{' '}
                  <span className="jp-Convect-ownWords">{notes}</span>
                </span>
              )}
            </li>
          );
        })}
      </ul>
    </Tile>
  );
}
