import * as React from 'react';

import type { ConvectApi, IAttemptKey } from '../../api';
import { sentenceOf } from '../../api';
import type { IPageOptions } from '../../ui';
import { Observable, Page, useModel, useTrans } from '../../ui';
import TextDiff from '../compare/diff';
import { textOf } from '../compare/notebooks';

/** The source of a notebook and what became of it. */
export class ChangesModel extends Observable {
  constructor(
    api: ConvectApi,
    readonly key: IAttemptKey
  ) {
    super();
    void this.load(api);
  }

  texts: [string, string] | null = null;
  error: unknown = null;

  private async load(api: ConvectApi): Promise<void> {
    try {
      const [source, executed] = await Promise.all([
        api.notebook(this.key, { source: true }),
        api.notebook(this.key)
      ]);
      const options = { outputs: true };
      this.texts = [textOf(source, options), textOf(executed, options)];
    } catch (error) {
      this.error = error;
    }
    this.touch();
  }
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
  const { texts, error, key } = useModel(props.model);
  const trans = useTrans();
  return (
    <>
      <header className="jp-ConvectRuns-header">
        <div className="jp-ConvectRuns-title">
          <h2>{trans.__('What the run changed in %1', key.step)}</h2>
        </div>
        <div className="jp-ConvectRuns-facts">
          <span>
            {trans.__('Left the source, right the executed notebook')}
          </span>
        </div>
      </header>
      {!!error && (
        <div className="jp-ConvectRuns-hint">{sentenceOf(error)}</div>
      )}
      {texts && (
        <div className="jp-ConvectRuns-compare">
          <TextDiff left={texts[0]} right={texts[1]} />
        </div>
      )}
    </>
  );
}
