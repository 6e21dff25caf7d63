import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { IDisposable } from '@lumino/disposable';
import * as React from 'react';

import '../../style/dialog.css';

import { FormDialog } from './dialog';
import { TranslationProvider } from './hooks';

const ACCEPT = 1;

/** What a dialog asks for; `submit` gives null when the server has not taken it. */
export interface IAskedForm<T> extends IDisposable {
  readonly trans: TranslationBundle;
  submit: () => Promise<T | null>;
}

/** Ask until the server has taken what was asked for; null when nobody wants it any more. */
export async function askWith<T>(
  form: IAskedForm<T>,
  words: { title: string; accept: string },
  content: () => JSX.Element
): Promise<T | null> {
  const dialog = new AskingDialog(form, words, content);
  await dialog.launch();
  const { answer } = dialog;
  dialog.dispose();
  form.dispose();
  return answer;
}

/** A dialog that stays open until the server has taken what it asks for. */
class AskingDialog<T> extends FormDialog<unknown> {
  constructor(
    private readonly form: IAskedForm<T>,
    words: { title: string; accept: string },
    content: () => JSX.Element
  ) {
    super({
      title: words.title,
      body: new Body(form.trans, content),
      buttons: [
        Dialog.cancelButton({ label: form.trans.__('Cancel') }),
        Dialog.okButton({ label: words.accept })
      ],
      defaultButton: ACCEPT
    });
  }

  answer: T | null = null;

  override resolve(index?: number): void {
    if (index === undefined || index === ACCEPT) {
      void this.accept();
    } else {
      super.resolve(index);
    }
  }

  private async accept(): Promise<void> {
    if (this._isBusy) {
      return;
    }
    this._isBusy = true;
    this.answer = await this.form.submit();
    this._isBusy = false;
    if (this.answer !== null) {
      super.resolve(ACCEPT);
    } else {
      this.node.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
    }
  }

  private _isBusy = false;
}

class Body extends ReactWidget {
  constructor(
    private readonly trans: TranslationBundle,
    private readonly content: () => JSX.Element
  ) {
    super();
    this.addClass('jp-Convect-dialogBody');
  }

  protected override render(): JSX.Element {
    return (
      <TranslationProvider value={this.trans}>
        {this.content()}
      </TranslationProvider>
    );
  }
}
