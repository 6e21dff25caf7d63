import type { IDisposable } from '@lumino/disposable';
import * as React from 'react';

import '../../../style/sweep.css';

import type { Execute, IPageOptions } from '../../ui';
import { sweepIcon } from '../../icons';
import { Page } from '../../ui';
import type { SweepModel } from './model';
import { SweepView } from './view';

export { SweepModel } from './model';

/** The page of one sweep, in the main area. */
export class SweepPage extends Page<SweepModel> {
  constructor(model: SweepModel, options: IPageOptions) {
    super(model, options);
    this.addClass('jp-Convect-sweep');
    this.title.icon = sweepIcon;
    this.title.label = options.trans.__('Sweep');
    this.shown = model.runs.shows(model.id, () => this.isVisible);
  }

  private readonly shown: IDisposable;

  override dispose(): void {
    this.shown.dispose();
    super.dispose();
  }

  protected get name(): string | null {
    return this.model.name;
  }

  protected content(execute: Execute): JSX.Element {
    return <SweepView model={this.model} execute={execute} />;
  }
}
