import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import * as React from 'react';

import '../../style/common.css';
import '../../style/page.css';

import { convectIcon } from '../icons';
import { TranslationProvider } from './hooks';
import type { Observable } from './observable';

export type Execute = (command: string, args?: Record<string, unknown>) => void;

export interface IPageOptions {
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/** A page in the main area that shows a model, which goes with it. */
export abstract class Page<T extends Observable> extends ReactWidget {
  constructor(
    readonly model: T,
    private readonly options: IPageOptions
  ) {
    super();
    this.addClass('jp-ConvectRuns-page');
    this.title.icon = convectIcon;
    this.title.closable = true;
    model.changed.connect(this.rename, this);
  }

  override dispose(): void {
    if (!this.isDisposed) {
      this.model.dispose();
      super.dispose();
    }
  }

  /** What the tab says; null to leave it as it is. */
  protected abstract get name(): string | null;

  protected abstract content(execute: Execute): JSX.Element;

  protected override render(): JSX.Element {
    const { commands, trans } = this.options;
    const execute: Execute = (command, args) =>
      void commands.execute(command, args as ReadonlyPartialJSONObject);
    return (
      <TranslationProvider value={trans}>
        {this.content(execute)}
      </TranslationProvider>
    );
  }

  private rename(): void {
    this.title.label = this.name ?? this.title.label;
  }
}
