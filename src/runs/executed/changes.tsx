import type { INotebookContent } from '@jupyterlab/nbformat';
import * as React from 'react';

import type { IConvectApi, IAttemptKey } from '../../api';
import { sentenceOf } from '../../api';
import type { IPageOptions } from '../../ui';
import { Check, Page, PageModel, useKept, useModel, useTrans } from '../../ui';
import TextDiff from '../../ui/textdiff';
import { textOf } from '../compare/notebooks';

/** The source of a notebook and what became of it. */
export class ChangesModel extends PageModel {
  constructor(
    api: IConvectApi,
    readonly key: IAttemptKey
  ) {
    super();
    void this.load(api);
  }

  error: unknown = null;

  /** The source and the executed notebook as texts, with what cells printed or without. */
  texts(outputs: boolean): [string, string] | null {
    return (
      this._notebooks && [
        textOf(this._notebooks[0], { outputs }),
        textOf(this._notebooks[1], { outputs })
      ]
    );
  }

  private async load(api: IConvectApi): Promise<void> {
    try {
      this._notebooks = await Promise.all([
        api.notebook(this.key, { source: '1' }),
        api.notebook(this.key)
      ]);
    } catch (error) {
      this.error = error;
    }
    this.touch();
  }

  private _notebooks: [INotebookContent, INotebookContent] | null = null;
}

/** What a run changed in a notebook: the parameters put into it, and the outputs. */
export class ChangesPage extends Page<ChangesModel> {
  constructor(model: ChangesModel, options: IPageOptions) {
    super(model, options);
    const { step } = model.key;
    this.title.label = options.trans.__('Changes of %1', step);
  }

  protected get name(): string | null {
    return null;
  }

  protected content(): JSX.Element {
    return <Changes model={this.model} />;
  }
}

function Changes(props: { model: ChangesModel }): JSX.Element {
  const model = useModel(props.model);
  const { error, key } = model;
  const trans = useTrans();
  const [withOutputs, setWithOutputs] = useKept('outputs', false);
  const texts = model.texts(withOutputs);
  return (
    <>
      <header className="jp-Convect-header">
        <div className="jp-Convect-title">
          <h2>{trans.__('What the run changed in %1', key.step)}</h2>
        </div>
        <div className="jp-Convect-facts">
          <span>
            {trans.__(
              'The source on the left, the executed notebook on the right'
            )}
          </span>
          <Check
            label={trans.__('Outputs, too')}
            checked={withOutputs}
            onChange={setWithOutputs}
          />
        </div>
      </header>
      {!!error && <div className="jp-Convect-hint">{sentenceOf(error)}</div>}
      {texts && texts[0] === texts[1] && (
        <div className="jp-Convect-hint">
          {trans.__('The sources are the same.')}
        </div>
      )}
      {texts && texts[0] !== texts[1] && (
        <div className="jp-Convect-compare">
          <TextDiff
            key={String(withOutputs)}
            left={texts[0]}
            right={texts[1]}
          />
        </div>
      )}
    </>
  );
}
