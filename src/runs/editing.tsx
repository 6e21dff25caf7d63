import { Dialog } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import * as React from 'react';

import type { IRunSummary } from '../api';
import { FormDialog, TextField } from '../ui';

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
    ]
  });
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
    const { name, labels, note } = before;
    this._texts = { name, labels: labelsText(labels), note };
  }

  getValue(): IRunWords {
    const { name, labels, note } = this._texts;
    return {
      name: name.trim() || this.before.name,
      labels: labelsOf(labels),
      note
    };
  }

  protected override render(): JSX.Element {
    const { trans } = this;
    const field = (name: keyof WordsBody['_texts']) => ({
      value: this._texts[name],
      onChange: (text: string) => {
        this._texts = { ...this._texts, [name]: text };
        this.update();
      }
    });
    return (
      <div className="jp-Convect-form">
        <TextField label={trans.__('Name')} {...field('name')} />
        <TextField
          label={trans.__('Labels, one in each line')}
          lines={3}
          example={trans.__('key=value')}
          {...field('labels')}
        />
        <TextField label={trans.__('Note')} lines={5} {...field('note')} />
      </div>
    );
  }

  private _texts: { name: string; labels: string; note: string };
}
