import { Dialog } from '@jupyterlab/apputils';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import '../../../style/dialog.css';

import { FormDialog, TranslationProvider } from '../../ui';
import { isPipeline } from './document';
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

/** "Run as pipeline". It stays open until what is chosen has begun. */
export class RunDialog extends FormDialog<unknown> {
  constructor(private readonly form: RunForm) {
    const { trans, subject } = form;
    const keep = Dialog.createButton({
      accept: false,
      label: trans.__('Save as pipeline'),
      caption: trans.__('Make a .pipeline file of it and open that')
    });
    const buttons = [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      // A pipeline is one already.
      ...(isPipeline(subject.path ?? '') ? [] : [keep]),
      Dialog.okButton({ label: trans.__('Run') })
    ];
    super({
      title: trans.__('Run %1', subject.title),
      body: new FormBody(form),
      buttons,
      defaultButton: buttons.length - 1
    });
    this._keep = buttons.indexOf(keep);
    this._run = buttons.length - 1;
    this.addClass('jp-Convect-runDialog');
    form.changed.connect(this.onChanged, this);
    this.onChanged();
  }

  /** What was answered; null when nothing was. What has begun is told, however it was left. */
  async ask(): Promise<Answer> {
    await this.launch();
    await this._beginning;
    return this._answer;
  }

  override resolve(index?: number): void {
    if (index === undefined || index === this._run) {
      this._beginning ??= this.begin();
    } else {
      if (index === this._keep) {
        this._answer = { show: 'pipeline' };
      }
      super.resolve(index);
    }
  }

  private async begin(): Promise<void> {
    await this.form.ready;
    const begun = this.form.canRun ? await this.form.submit() : null;
    if (begun) {
      this._answer = { begun };
      super.resolve(this._run);
    } else if (!this.isDisposed) {
      this.node.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
    }
    this._beginning = null;
  }

  private onChanged(): void {
    const buttons = this.node.querySelectorAll<HTMLButtonElement>(
      '.jp-Dialog-footer button.jp-Dialog-button'
    );
    const { isLoading, isBusy, canRun } = this.form;
    // A button that is disabled loses the keyboard, and Escape with it.
    buttons[this._run]?.setAttribute(
      'aria-disabled',
      String(!isLoading && !isBusy && !canRun)
    );
  }

  private _answer: Answer = null;
  private _beginning: Promise<void> | null = null;
  private _keep: number;
  private _run: number;
}
