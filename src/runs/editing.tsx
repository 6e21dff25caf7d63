import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IRunSummary } from '../api';
import { FormDialog } from '../ui';

/** What people call a run and write about it. */
export interface IRunWords {
  name: string;
  labels: Record<string, string>;
  note: string;
}

/** Ask for the name, the labels and the note of a run; null when nothing is to change. */
export async function askWords(
  run: Pick<IRunSummary, 'name' | 'labels' | 'note'>,
  trans: TranslationBundle
): Promise<IRunWords | null> {
  const { name, labels, note } = run;
  const body = new WordsBody({ name, labels, note }, trans);
  const dialog = new FormDialog<IRunWords>({
    title: trans.__('Name, Labels and Note'),
    body,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.okButton({ label: trans.__('Save') })
    ],
    focusNodeSelector: 'input'
  });
  dialog.addClass('jp-Convect-dialog');
  const answer = await dialog.launch();
  return answer.button.accept ? answer.value : null;
}

/** `key=value`, one in each line. */
export function labelsText(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([key, value]) => (value ? `${key}=${value}` : key))
    .join('\n');
}

/** Back from text; a line without `=` is a label without a value. */
export function labelsOf(text: string): Record<string, string> {
  const pairs = text
    .split('\n')
    .map(line => /^\s*([^=]*[^=\s])\s*(?:=\s*(.*?))?\s*$/.exec(line))
    .flatMap(found => (found ? [[found[1], found[2] ?? '']] : []));
  return Object.fromEntries(pairs) as Record<string, string>;
}

class WordsBody extends ReactWidget implements Dialog.IBodyWidget<IRunWords> {
  constructor(
    private readonly before: IRunWords,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-Convect-dialogBody');
    this._labels = labelsText(before.labels);
    this._name = before.name;
    this._note = before.note;
  }

  getValue(): IRunWords {
    return {
      name: this._name.trim() || this.before.name,
      labels: labelsOf(this._labels),
      note: this._note
    };
  }

  protected override render(): JSX.Element {
    const { trans } = this;
    return (
      <div className="jp-ConvectRuns-words">
        <label>
          {trans.__('Name')}
          <input
            className="jp-mod-styled"
            defaultValue={this._name}
            maxLength={200}
            onChange={event => (this._name = event.target.value)}
          />
        </label>
        <label>
          {trans.__('Labels, one in each line')}
          <textarea
            className="jp-mod-styled"
            rows={3}
            placeholder={trans.__('key=value')}
            defaultValue={this._labels}
            onChange={event => (this._labels = event.target.value)}
          />
        </label>
        <label>
          {trans.__('Note')}
          <textarea
            className="jp-mod-styled"
            rows={5}
            defaultValue={this._note}
            onChange={event => (this._note = event.target.value)}
          />
        </label>
      </div>
    );
  }

  private _labels: string;
  private _name: string;
  private _note: string;
}
