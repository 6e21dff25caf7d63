import * as React from 'react';

import type { Execute, IPageOptions } from '../../ui';
import { compareIcon } from '../../icons';
import { Page } from '../../ui';
import type { CompareModel } from './model';
import { CompareView } from './view';

export { CompareModel } from './model';

/** Runs side by side, in the main area. */
export class ComparePage extends Page<CompareModel> {
  constructor(model: CompareModel, options: IPageOptions) {
    super(model, options);
    this.title.label = options.trans.__('Compare runs');
    this.title.icon = compareIcon;
  }

  protected get name(): string | null {
    return null;
  }

  protected content(execute: Execute): JSX.Element {
    return <CompareView model={this.model} execute={execute} />;
  }
}
