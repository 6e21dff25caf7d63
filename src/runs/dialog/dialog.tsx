import { Dialog } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import '../../../style/dialog.css';

import { FormDialog, TranslationProvider } from '../../ui';
import type { Begun, RunForm } from './form';
import { RunFormView } from './view';

export type Answer = { begun: Begun } | { show: 'pipeline' } | null;

class FormBody extends ReactWidget {
  constructor(readonly form: RunForm) {
    super();
    this.addClass('jp-Convect-dialogBody');
  }

  protected override render(): JSX.Element {
    return (
      <TranslationProvider value={this.form.trans}>
        <RunFormView form={this.form} />
      </TranslationProvider>
    );
  }
}

const SHOW = 1;
const RUN = 2;

/** "Run as pipeline". It stays open until what is chosen has begun. */
export class RunDialog extends FormDialog<unknown> {
  constructor(private readonly form: RunForm) {
    const { trans, subject } = form;
    super({
      title: trans.__('Run %1', subject.title),
      body: new FormBody(form),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.createButton({
          accept: false,
          label: trans.__('Show as pipeline'),
          caption: trans.__('Make a .pipeline file of it and open that')
        }),
        Dialog.okButton({ label: trans.__('Run') })
      ],
      defaultButton: RUN,
      focusNodeSelector: 'input, select'
    });
    this.addClass('jp-Convect-dialog');
    this.addClass('jp-ConvectRuns-dialog');
    form.changed.connect(this.onChanged, this);
    this.onChanged();
  }

  /** What was answered; null when nothing was. */
  async ask(): Promise<Answer> {
    await this.launch();
    return this._answer;
  }

  override resolve(index?: number): void {
    if (index === SHOW) {
      this._answer = { show: 'pipeline' };
      super.resolve(index);
    } else if (index === undefined || index === RUN) {
      void this.begin();
    } else {
      super.resolve(index);
    }
  }

  private async begin(): Promise<void> {
    await this.form.ready;
    if (!this.form.canRun) {
      this.node.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
      return;
    }
    const begun = await this.form.submit();
    if (begun) {
      this._answer = { begun };
      super.resolve(RUN);
    }
  }

  private onChanged(): void {
    const buttons = this.node.querySelectorAll<HTMLButtonElement>(
      '.jp-Dialog-footer button.jp-Dialog-button'
    );
    const run = buttons[RUN];
    if (run) {
      // While the form loads it has the focus; pressing it waits for the form.
      run.disabled = !this.form.isLoading && !this.form.canRun;
    }
  }

  private _answer: Answer = null;
}
