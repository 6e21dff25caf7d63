import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IConvectApi } from '../api';
import { Failure, FormDialog, TranslationProvider, useTrans } from '../ui';
import { linesOf } from './difference';
import { keyOf } from './search';
import type { IEntry } from './types';

/** Shows what would change, and gives the digests of the updates that are wanted. */
export async function chooseUpdates(
  entries: readonly IEntry[],
  api: IConvectApi,
  trans: TranslationBundle
): Promise<string[] | null> {
  const body = new UpdatesBody(entries, api, trans);
  const result = await new FormDialog({
    title: trans._n('%1 update', '%1 updates', entries.length),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Take what is marked') })
    ]
  }).launch();
  return result.button.accept ? body.getValue() : null;
}

class UpdatesBody extends ReactWidget {
  constructor(
    private readonly entries: readonly IEntry[],
    private readonly api: IConvectApi,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-Convect-updates');
    this._chosen = new Set(entries.map(entry => entry.update!));
  }

  getValue(): string[] {
    return [...this._chosen];
  }

  protected override render(): JSX.Element {
    const { trans } = this;
    return (
      <TranslationProvider value={trans}>
        <p>
          {trans.__(
            'Pipelines keep the definition they were made with. Components that are added from now on have the new one.'
          )}
        </p>
        {this.entries.map(entry => (
          <Update
            key={keyOf(entry)}
            entry={entry}
            api={this.api}
            isOpen={this.entries.length === 1}
            onChange={isChosen => this.choose(entry.update!, isChosen)}
          />
        ))}
      </TranslationProvider>
    );
  }

  private choose(digest: string, isChosen: boolean): void {
    if (isChosen) {
      this._chosen.add(digest);
    } else {
      this._chosen.delete(digest);
    }
  }

  private _chosen: Set<string>;
}

function Update(props: {
  entry: IEntry;
  api: IConvectApi;
  isOpen: boolean;
  onChange: (isChosen: boolean) => void;
}): JSX.Element {
  const { entry, api, onChange } = props;
  const trans = useTrans();
  const [isOpen, setIsOpen] = React.useState(props.isOpen);
  return (
    <div className="jp-Convect-update">
      <input
        type="checkbox"
        defaultChecked
        aria-label={trans.__('Take the update of %1', entry.name)}
        onChange={event => onChange(event.target.checked)}
      />
      <details
        open={isOpen}
        onToggle={event => setIsOpen(event.currentTarget.open)}
      >
        <summary>{entry.name}</summary>
        {isOpen && <Difference entry={entry} api={api} />}
      </details>
    </div>
  );
}

function Difference(props: { entry: IEntry; api: IConvectApi }): JSX.Element {
  const { entry, api } = props;
  const trans = useTrans();
  const [diff, setDiff] = React.useState<string | null>(null);
  const [error, setError] = React.useState<unknown>(null);
  React.useEffect(() => {
    const { digest, update } = entry;
    api
      .difference({ digest, other: update! })
      .then(({ difference }) => setDiff(difference), setError);
  }, [api, entry]);
  if (error) {
    return <Failure error={error} />;
  }
  if (diff === null) {
    return <div className="jp-Convect-hint">{trans.__('Loading…')}</div>;
  }
  const label = { added: trans.__('Added'), removed: trans.__('Removed') };
  return (
    <pre className="jp-Convect-unified" tabIndex={0}>
      {linesOf(diff).map(({ kind, text }, index) =>
        kind === 'added' ? (
          <ins key={index} aria-label={label.added}>
            {text}
            {'\n'}
          </ins>
        ) : kind === 'removed' ? (
          <del key={index} aria-label={label.removed}>
            {text}
            {'\n'}
          </del>
        ) : (
          <span key={index} className={`jp-mod-${kind}`}>
            {text}
            {'\n'}
          </span>
        )
      )}
    </pre>
  );
}
