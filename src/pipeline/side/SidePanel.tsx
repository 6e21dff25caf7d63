import { closeIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { TranslationProvider } from '../../ui/hooks';
import { Tabs } from '../../ui/tabs';
import type { Session } from '../session';
import { useStore } from '../store';
import { Problems } from './Problems';
import { Properties } from './Properties';

/** Beside the canvas: properties, or problems. */
export function SidePanel({ session }: { session: Session }): JSX.Element {
  const { trans } = session;
  const panel = useStore(session.state, state => state.panel);
  const count = useStore(session.checker.store, state => state.problems.length);
  const tabs = [
    { name: 'properties', label: trans.__('Properties') },
    {
      name: 'problems',
      label: count ? trans.__('Problems (%1)', count) : trans.__('Problems')
    }
  ] as const;
  return (
    <TranslationProvider value={trans}>
      <div className="jp-Convect-sideHeader">
        <Tabs
          label={trans.__('Side panel')}
          tabs={tabs}
          selected={panel ?? 'properties'}
          onSelect={name => session.state.update({ panel: name })}
        />
        <button
          className="jp-Convect-iconButton jp-Convect-sideClose"
          title={trans.__('Close')}
          aria-label={trans.__('Close')}
          onClick={() => session.state.update({ panel: null })}
        >
          <closeIcon.react tag="span" />
        </button>
      </div>
      <div
        className="jp-Convect-sideBody"
        role="tabpanel"
        onKeyDown={event => {
          if (event.key === 'Escape' && !event.nativeEvent.isComposing) {
            giveBack(session);
          }
        }}
      >
        {panel === 'problems' ? (
          <Problems session={session} />
        ) : (
          <Properties session={session} />
        )}
      </div>
    </TranslationProvider>
  );
}

/** The keyboard goes back to the node whose properties these are. */
function giveBack(session: Session): void {
  const [id] = session.state.value.selection;
  if (id === undefined) {
    session.canvas?.focusPane();
  } else {
    session.canvas?.focus(id);
  }
}
