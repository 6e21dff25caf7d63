import type { TranslationBundle } from '@jupyterlab/translation';
import { ReactWidget } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import type { Message } from '@lumino/messaging';
import * as React from 'react';

import '../../style/page.css';

import { ConvectError, sentenceOf } from '../api';
import { convectIcon } from '../icons';
import { KeptState, TranslationProvider } from './hooks';
import type { PageModel } from './observable';

export type Execute = (command: string, args?: Record<string, unknown>) => void;

export interface IPageOptions {
  commands: CommandRegistry;
  trans: TranslationBundle;
}

/**
 * A page in the main area that shows a model, which goes with it.
 *
 * Its content is taken down when its tab is moved, so what a person typed and where
 * they were is kept here (`useKept`), and what was read is kept in the model.
 */
export abstract class Page<T extends PageModel> extends ReactWidget {
  constructor(
    readonly model: T,
    private readonly options: IPageOptions
  ) {
    super();
    this.addClass('jp-Convect-page');
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

  protected override onAfterAttach(msg: Message): void {
    super.onAfterAttach(msg);
    this.model.setShown(this.isVisible);
  }

  protected override onAfterShow(msg: Message): void {
    super.onAfterShow(msg);
    this.model.setShown(true);
  }

  protected override onAfterHide(msg: Message): void {
    super.onAfterHide(msg);
    this.model.setShown(false);
  }

  protected override onBeforeDetach(msg: Message): void {
    this.model.setShown(false);
    super.onBeforeDetach(msg);
  }

  /** What the tab says; null to leave it as it is. */
  protected abstract get name(): string | null;

  /** What tells tabs of one name apart, when the pointer rests on one. */
  protected get caption(): string {
    return '';
  }

  protected abstract content(execute: Execute): JSX.Element;

  protected override render(): JSX.Element {
    const { commands, trans } = this.options;
    const execute: Execute = (command, args) =>
      void commands.execute(command, args as ReadonlyPartialJSONObject);
    return (
      <TranslationProvider value={trans}>
        <KeptState.Provider value={this._kept}>
          {this.content(execute)}
        </KeptState.Provider>
      </TranslationProvider>
    );
  }

  private rename(): void {
    this.title.label = this.name ?? this.title.label;
    this.title.caption = this.caption || this.title.label;
  }

  private _kept = new Map<string, unknown>();
}

/** In the place of a page that there is nothing to show on, or not yet. */
export function Unavailable(props: {
  error: unknown;
  /** What is said when the server does not have it. */
  missing: string;
}): JSX.Element | null {
  const { error, missing } = props;
  return error ? (
    <div className="jp-Convect-empty" role="alert">
      {error instanceof ConvectError && error.isMissing
        ? missing
        : sentenceOf(error)}
    </div>
  ) : null;
}
