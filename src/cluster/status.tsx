import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import { Poll } from '@lumino/polling';
import * as React from 'react';

import type { IOverview } from '../api';
import { CommandIDs } from '../commands';
import type { IConvectApi } from '../tokens';
import { amountText, resourceLabel } from './words';

/** How often to look, in milliseconds; not at all while the page is hidden. */
const PAUSE = 30_000;

/** What of this machine steps may still use, in the status bar; it leads to the page. */
export class StatusItem extends ReactWidget {
  constructor(
    private readonly api: IConvectApi,
    private readonly commands: CommandRegistry,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-mod-highlighted');
    this._poll = new Poll({
      factory: () => this.look(),
      frequency: { interval: PAUSE, backoff: true, max: 10 * PAUSE },
      standby: 'when-hidden'
    });
  }

  override dispose(): void {
    this._poll.dispose();
    super.dispose();
  }

  protected override render(): JSX.Element {
    const { trans } = this;
    return (
      <button
        type="button"
        className="jp-Convect-clusterStatus"
        title={trans.__(
          'What steps may still use of this machine. Show the cluster.'
        )}
        onClick={() => void this.commands.execute(CommandIDs.showCluster)}
      >
        {(this._overview && statusText(this._overview, trans)) ||
          trans.__('Cluster')}
      </button>
    );
  }

  private async look(): Promise<void> {
    this._overview = await this.api.top('local');
    this.update();
  }

  private _overview: IOverview | null = null;
  private _poll: Poll;
}

/** `CPU 1.5/2 · GPU 1/4`: what is free of what there is. */
export function statusText(
  overview: IOverview,
  trans: TranslationBundle
): string {
  const resources = overview.nodes?.[0]?.resources ?? [];
  return resources
    .filter(({ name, free }) => name !== 'memory' && free !== null)
    .map(
      ({ name, free, total }) =>
        `${resourceLabel(name, trans)} ${amountText(name, free ?? 0)}/${amountText(name, total)}`
    )
    .join(' · ');
}
