import type { IToolbarWidgetRegistry } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  CommandToolbarButton,
  errorIcon,
  HTMLSelect,
  ReactWidget,
  ToolbarButtonComponent
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import * as React from 'react';

import type { IRunSummary } from '../api';
import { formatAgo, formatParameters, momentOf } from '../ui/format';
import { TranslationProvider, useClock, useTrans } from '../ui/hooks';
import { StateIcon } from '../ui/stateicon';
import { stateLabel } from '../ui/states';
import { FILE_COMMANDS, menuButton } from '../ui/toolbarmenu';
import { EditorCommands, FACTORY } from './ids';
import type { Session } from './session';
import { useStore } from './store';
import type { PipelineWidget } from './widget';

/** Items of the toolbar that are more than a command. */
export function addToolbarItems(
  toolbars: IToolbarWidgetRegistry,
  commands: CommandRegistry,
  trans: TranslationBundle
): void {
  // With its label in words: one in the schema would not be translated.
  toolbars.addFactory(
    FACTORY,
    'run',
    () =>
      new CommandToolbarButton({
        commands,
        id: EditorCommands.run,
        label: trans.__('Run pipeline')
      })
  );
  toolbars.addFactory<PipelineWidget>(FACTORY, 'run-menu', widget =>
    menuButton({
      commands,
      ids: FILE_COMMANDS,
      label: trans.__('Schedule it, or make it callable'),
      args: () => ({ path: widget.context.path })
    })
  );
  toolbars.addFactory<PipelineWidget>(FACTORY, 'shown-run', widget =>
    ReactWidget.create(<ShownRun session={widget.content.session} />)
  );
  toolbars.addFactory<PipelineWidget>(FACTORY, 'problems', widget =>
    ReactWidget.create(<ProblemCount session={widget.content.session} />)
  );
}

const MORE = '+';

/** Which run of this file the canvas shows. */
function ShownRun({ session }: { session: Session }): JSX.Element | null {
  const { trans } = session;
  const { run, runs, hasMore } = useStore(session.runs.store, state => state);
  if (runs.length === 0 && !run) {
    return null;
  }
  const isListed = runs.some(item => item.id === run?.id);
  return (
    <TranslationProvider value={trans}>
      <div className="jp-Convect-shownRun">
        {run && <StateIcon state={run.state} />}
        <HTMLSelect
          value={run?.id ?? ''}
          aria-label={trans.__('Run to show on the canvas')}
          title={trans.__('Run to show on the canvas')}
          onChange={event =>
            event.target.value === MORE
              ? session.runs.listMore()
              : session.runs.show(event.target.value || null)
          }
        >
          <option value="">{trans.__('No run shown')}</option>
          {run && !isListed && <option value={run.id}>{run.name}</option>}
          {runs.map(item => (
            <RunOption key={item.id} run={item} />
          ))}
          {hasMore && <option value={MORE}>{trans.__('Older runs…')}</option>}
        </HTMLSelect>
      </div>
    </TranslationProvider>
  );
}

function RunOption({ run }: { run: IRunSummary }): JSX.Element {
  const trans = useTrans();
  const ago = useClock(() => formatAgo(momentOf(run)));
  return (
    <option value={run.id}>
      {[stateLabel(trans, run.state), ago, formatParameters(run.parameters)]
        .filter(Boolean)
        .join(' · ')}
    </option>
  );
}

function ProblemCount({ session }: { session: Session }): JSX.Element | null {
  const { trans } = session;
  const { problems, isStale } = useStore(session.checker.store, state => state);
  const panel = useStore(session.state, state => state.panel);
  const errors = problems.filter(item => item.severity === 'error').length;
  const count = problems.length;
  if (count === 0 && !isStale) {
    return null;
  }
  const label = isStale
    ? trans.__('Not checked')
    : errors
      ? trans._n('%1 problem', '%1 problems', count)
      : trans._n('%1 hint', '%1 hints', count);
  return (
    <div
      className={`jp-Convect-problemCount jp-mod-${errors ? 'error' : 'warning'}`}
    >
      <ToolbarButtonComponent
        icon={errorIcon}
        label={label}
        tooltip={trans.__('Show the problems')}
        pressed={panel === 'problems'}
        onClick={() =>
          session.state.update({
            panel: panel === 'problems' ? null : 'problems'
          })
        }
      />
    </div>
  );
}
