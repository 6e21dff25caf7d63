import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import { TranslationProvider } from '../../ui/hooks';
import type { RunsModel } from '../model';
import { PanelModel } from './model';

const RunsView = React.lazy(() => import('./view'));

/** The runs of every runtime, in the side bar. It does nothing before it is first shown. */
export class RunsPanel extends ReactWidget {
  constructor(
    private readonly runs: RunsModel,
    private readonly commands: CommandRegistry,
    private readonly trans: TranslationBundle
  ) {
    super();
    this.addClass('jp-ConvectRuns-runs');
  }

  override dispose(): void {
    this._model?.dispose();
    super.dispose();
  }

  protected override onBeforeShow(msg: Message): void {
    this._model ??= new PanelModel(this.runs);
    this._model.refresh();
    super.onBeforeShow(msg);
    this.update();
  }

  protected override render(): JSX.Element | null {
    const model = this._model;
    if (!model) {
      return null;
    }
    return (
      <TranslationProvider value={this.trans}>
        <React.Suspense fallback={null}>
          <RunsView
            model={model}
            execute={(command, args) =>
              void this.commands.execute(
                command,
                args as ReadonlyPartialJSONObject
              )
            }
          />
        </React.Suspense>
      </TranslationProvider>
    );
  }

  private _model: PanelModel | null = null;
}
