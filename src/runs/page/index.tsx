import { PathExt } from '@jupyterlab/coreutils';
import type { CommandRegistry } from '@lumino/commands';
import type { IDisposable } from '@lumino/disposable';
import * as React from 'react';

import type { IPlanViewFactory } from '../../tokens';
import type { Execute, IPageOptions } from '../../ui';
import { formatParameters, Page } from '../../ui';
import type { RunModel } from './model';
import { hasTerminals, openTerminal } from './terminal';
import { RunPageView } from './view';

export { RunModel } from './model';

/** The page of one run, in the main area. */
export class RunPage extends Page<RunModel> {
  constructor(
    model: RunModel,
    options: IPageOptions & { planViews: IPlanViewFactory | null }
  ) {
    super(model, options);
    this.commands = options.commands;
    this.planViews = options.planViews;
    this.title.label = options.trans.__('Run');
    this.shown = model.runs.shows(model.id, () => this.isVisible);
  }

  override dispose(): void {
    this.shown.dispose();
    super.dispose();
  }

  private readonly commands: CommandRegistry;
  private readonly planViews: IPlanViewFactory | null;
  private readonly shown: IDisposable;

  /** Scripts of one name are told apart by how they end. */
  protected get name(): string | null {
    const { name, view } = this.model;
    const file = PathExt.basename(view?.path ?? '');
    const isScript = !['.ipynb', '.pipeline'].includes(PathExt.extname(file));
    return isScript && name === PathExt.basename(file, PathExt.extname(file))
      ? file
      : name;
  }

  protected override get caption(): string {
    const { path, parameters = {} } = this.model.view ?? {};
    return [path, formatParameters(parameters)].filter(Boolean).join('\n');
  }

  protected content(execute: Execute): JSX.Element {
    return (
      <RunPageView
        model={this.model}
        planViews={this.planViews}
        openTerminal={
          hasTerminals(this.commands)
            ? words => void openTerminal(this.commands, words)
            : null
        }
        execute={execute}
      />
    );
  }
}
