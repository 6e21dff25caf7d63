import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { ISourceChange, Version } from '../api';
import { FormDialog, TranslationProvider, useTrans } from '../ui';
import { Changes } from '../ui/changes';

/** Ask which files to run again when they have changed since; null for none. */
export async function askVersion(
  changes: readonly ISourceChange[],
  trans: TranslationBundle
): Promise<Version | null> {
  const dialog = new FormDialog<Version>({
    title: trans.__('Run which version again?'),
    body: new VersionBody(changes, trans),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Run') })
    ],
    focusNodeSelector: 'input:checked'
  });
  dialog.addClass('jp-Convect-dialog');
  dialog.addClass('jp-Convect-again');
  const answer = await dialog.launch();
  return answer.button.accept ? answer.value : null;
}

class VersionBody extends ReactWidget implements Dialog.IBodyWidget<Version> {
  constructor(
    private readonly changes: readonly ISourceChange[],
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-Convect-dialogBody');
  }

  getValue(): Version {
    return this._version;
  }

  protected override render(): JSX.Element {
    return (
      <TranslationProvider value={this.trans}>
        <VersionForm
          changes={this.changes}
          onChoose={version => {
            this._version = version;
          }}
        />
      </TranslationProvider>
    );
  }

  private _version: Version = 'today';
}

/** The two versions to choose from, and how they differ. */
export function VersionForm(props: {
  changes: readonly ISourceChange[];
  onChoose: (version: Version) => void;
}): JSX.Element {
  const { changes, onChoose } = props;
  const trans = useTrans();
  const [chosen, setChosen] = React.useState<Version>('today');
  const versions: [Version, string][] = [
    ['today', trans.__('Today’s files')],
    ['run', trans.__('The version of that run')]
  ];
  return (
    <div className="jp-Convect-form">
      <p>
        {trans._n(
          '%1 file has changed since that run was submitted.',
          '%1 files have changed since that run was submitted.',
          changes.length
        )}
      </p>
      <div role="radiogroup" aria-label={trans.__('Version')}>
        {versions.map(([version, label]) => (
          <label key={version} className="jp-Convect-version">
            <input
              type="radio"
              name="version"
              checked={chosen === version}
              onChange={() => {
                setChosen(version);
                onChoose(version);
              }}
            />
            {label}
          </label>
        ))}
      </div>
      <Changes
        changes={changes}
        before={trans.__('The version of that run')}
        lost={trans.__('The version of that run no longer exists.')}
      />
    </div>
  );
}
