import { Dialog, showDialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import '../../style/catalog.css';

import { Command } from './command';
import { containersOf } from './definition';
import type { IDefinition } from './types';

/** What somebody who approves a component has to read. */
export function Approval(props: {
  definition: IDefinition;
  trans: TranslationBundle;
}): JSX.Element {
  const { definition, trans } = props;
  return (
    <div className="jp-Convect-approval">
      <p className="jp-Convect-message" data-severity="error">
        {trans.__(
          'It is not contained: it runs as a plain process on this machine, with your rights and with access to your files. Read what it runs.'
        )}
      </p>
      {containersOf(definition).map(({ name, container }, index) => (
        <section key={index}>
          <h3>{name}</h3>
          <Command container={container} />
        </section>
      ))}
    </div>
  );
}

/** Shows every command that would run without a container, and asks whether it may. */
export async function askApproval(
  definition: IDefinition,
  trans: TranslationBundle
): Promise<boolean> {
  const result = await showDialog({
    title: trans.__('Run %1 without a container?', definition.name),
    body: <Approval definition={definition} trans={trans} />,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: trans.__('Approve') })
    ],
    defaultButton: 0
  });
  return result.button.accept;
}

/** Asks whether an approval is to be taken back. */
export async function askWithdrawal(
  definition: IDefinition,
  trans: TranslationBundle
): Promise<boolean> {
  const result = await showDialog({
    title: trans.__('Withdraw approval'),
    body: trans.__(
      '%1 will no longer run on this machine without a container.',
      definition.name
    ),
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Withdraw') })
    ]
  });
  return result.button.accept;
}
