import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import { TranslationProvider } from '../../ui/hooks';
import { loaded } from '../../ui/lazy';
import type { IRunStore } from '../../tokens';
import type * as Content from './content';
import type { PanelModel } from './model';

/** The runs of every runtime, in the side bar. It loads nothing before it is first shown. */
export class RunsPanel extends ReactWidget {
  constructor(
    private readonly runs: IRunStore,
    private readonly commands: CommandRegistry,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-Convect-runs');
  }

  override dispose(): void {
    this._model?.dispose();
    super.dispose();
  }

  protected override onBeforeShow(msg: Message): void {
    super.onBeforeShow(msg);
    void this.load();
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this._model?.setVisible(false);
  }

  protected override render(): JSX.Element | null {
    const [content, model] = [this._content, this._model];
    if (!content || !model) {
      return null;
    }
    return (
      <TranslationProvider value={this.trans}>
        <content.RunsView
          model={model}
          execute={(command, args) =>
            void this.commands.execute(
              command,
              args as ReadonlyPartialJSONObject
            )
          }
        />
      </TranslationProvider>
    );
  }

  private async load(): Promise<void> {
    this._content ??= await loaded(() => import('./content'));
    if (!this.isDisposed) {
      this._model?.setVisible(true);
      this._model ??= new this._content.PanelModel(this.runs);
      this.update();
    }
  }

  private _content: typeof Content | null = null;
  private _model: PanelModel | null = null;
}
