import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IWidgetTracker } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  addIcon,
  copyIcon,
  cutIcon,
  deleteIcon,
  duplicateIcon,
  MenuSvg,
  pasteIcon,
  redoIcon,
  searchIcon,
  terminalIcon,
  undoIcon
} from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';
import { Throttler } from '@lumino/polling';

import type { Alignment } from './positions';
import type * as CanvasChunk from './canvas';
import { parentsOf } from './graph';
import { layoutIcon, noteIcon, propertiesIcon } from './icons';
import { EditorCommands as ids } from './ids';
import type { Direction } from './keyboard';
import { runCommands } from './runcommands';
import type { Session } from './session';
import { canFold, nodeTargets, target, targets } from './targets';
import type { PipelineWidget } from './widget';

type Args = ReadonlyPartialJSONObject;

const NO_ARGS = { type: 'object', properties: {} } as const;

/** What one command of the editor is; all of them act on the current editor. */
export interface IEditorCommand {
  label: string | ((args: Args) => string);
  icon?: CommandRegistry.ICommandOptions['icon'];
  /** Whether it changes the document. */
  edits?: boolean;
  isEnabled?: (session: Session) => boolean;
  isVisible?: (session: Session) => boolean;
  isToggled?: (session: Session) => boolean;
  /** It is called from elsewhere, so the editor comes to the front. */
  shows?: boolean;
  args?: { [name: string]: { type: 'string' | 'number'; enum?: string[] } };
  /** What it takes to do it comes with the canvas, without which nothing can be done. */
  execute: (session: Session, args: Args, tools: typeof CanvasChunk) => unknown;
}

/** Where something new goes, and after what. */
const ADDITION = {
  x: { type: 'number' },
  y: { type: 'number' },
  after: { type: 'string' }
} as const;

const ALIGNMENTS: readonly Alignment[] = [
  'left',
  'center',
  'right',
  'top',
  'middle',
  'bottom',
  'across',
  'down'
];

export function addEditorCommands(
  app: JupyterFrontEnd,
  tracker: IWidgetTracker<PipelineWidget>,
  trans: TranslationBundle
): void {
  const current = (): Session | null =>
    tracker.currentWidget?.content.session ?? null;
  const all = { ...editorCommands(trans), ...runCommands(app, trans) };
  followState(app.commands, tracker, Object.keys(all));
  for (const [id, command] of Object.entries(all)) {
    app.commands.addCommand(id, {
      label: args =>
        typeof command.label === 'string' ? command.label : command.label(args),
      icon: command.icon,
      describedBy: {
        args: command.args
          ? { type: 'object', properties: command.args }
          : NO_ARGS
      },
      isEnabled: () => {
        const session = current();
        return (
          session !== null &&
          !session.doc.malformed &&
          !(command.edits && session.isReadOnly) &&
          (command.isEnabled?.(session) ?? true)
        );
      },
      isVisible: command.isVisible
        ? () => {
            const session = current();
            return session !== null && command.isVisible!(session);
          }
        : undefined,
      isToggled: command.isToggled
        ? () => {
            const session = current();
            return session !== null && command.isToggled!(session);
          }
        : undefined,
      execute: async args => {
        const session = current();
        if (command.shows && tracker.currentWidget) {
          app.shell.activateById(tracker.currentWidget.id);
        }
        return (
          session && command.execute(session, args, await import('./canvas'))
        );
      }
    });
  }
}

/** The submenu that aligns. Labels of submenus in a schema are not translated. */
export function addAlignMenu(
  app: JupyterFrontEnd,
  trans: TranslationBundle
): void {
  const submenu = new MenuSvg({ commands: app.commands });
  submenu.title.label = trans.__('Align');
  for (const how of ALIGNMENTS) {
    submenu.addItem({ command: ids.align, args: { how } });
  }
  app.contextMenu.addItem({
    type: 'submenu',
    submenu,
    selector: '.jp-Convect-canvas[data-context~="node"]',
    rank: 26
  });
}

/** Buttons and menus look again whenever the current editor has changed. */
function followState(
  commands: CommandRegistry,
  tracker: IWidgetTracker<PipelineWidget>,
  names: readonly string[]
): void {
  // It lives as long as the application.
  // eslint-disable-next-line jupyter/require-disposable-ownership
  const throttler = new Throttler(() => {
    for (const name of [...names, 'docmanager:save']) {
      commands.notifyCommandChanged(name);
    }
  }, 100);
  const refresh = () => void throttler.invoke();
  tracker.currentChanged.connect(refresh);
  tracker.widgetAdded.connect((_, widget) => {
    const { doc, runs, state } = widget.content.session;
    doc.changed.connect(refresh);
    runs.store.changed.connect(refresh);
    state.changed.connect(refresh);
  });
}

/** What had the keyboard may be gone; the canvas takes it then. */
function keepFocus(session: Session): void {
  requestAnimationFrame(() => {
    if (document.activeElement === document.body) {
      session.canvas?.focusPane();
    }
  });
}

const hasTargets = (session: Session) => targets(session).length > 0;

function editorCommands(trans: TranslationBundle): {
  [id: string]: IEditorCommand;
} {
  return {
    ...contentCommands(trans),
    ...arrangeCommands(trans),
    ...viewCommands(trans)
  };
}

function contentCommands(trans: TranslationBundle): {
  [id: string]: IEditorCommand;
} {
  return {
    [ids.addFiles]: {
      label: trans.__('Add Files…'),
      icon: addIcon,
      edits: true,
      args: ADDITION,
      execute: (session, args, { actions }) => actions.addFiles(session, args)
    },
    [ids.addComponent]: {
      label: trans.__('Add Component'),
      icon: addIcon,
      edits: true,
      shows: true,
      args: { component: { type: 'string' } },
      execute: (session, { component }, { actions }) =>
        actions.addComponent(session, String(component))
    },
    [ids.addCommand]: {
      label: trans.__('Add Command'),
      icon: terminalIcon,
      edits: true,
      args: ADDITION,
      execute: (session, args, { actions }) => actions.addCommand(session, args)
    },
    [ids.addNote]: {
      label: trans.__('Add Note'),
      icon: noteIcon,
      edits: true,
      execute: (session, _, { actions }) => actions.addNote(session)
    },
    [ids.copy]: {
      label: trans.__('Copy'),
      icon: copyIcon,
      isEnabled: hasTargets,
      execute: (session, _, { copying }) => copying.copyToSystem(session)
    },
    [ids.cut]: {
      label: trans.__('Cut'),
      icon: cutIcon,
      edits: true,
      isEnabled: hasTargets,
      execute: (session, _, { actions, copying }) => {
        copying.copyToSystem(session);
        actions.removeTargets(session);
      }
    },
    [ids.paste]: {
      label: trans.__('Paste'),
      icon: pasteIcon,
      edits: true,
      execute: (session, _, { copying }) => copying.pasteFromSystem(session)
    },
    [ids.duplicate]: {
      label: trans.__('Duplicate'),
      icon: duplicateIcon,
      edits: true,
      isEnabled: hasTargets,
      execute: (session, _, { copying }) => copying.duplicate(session)
    },
    [ids.remove]: {
      label: trans.__('Delete'),
      icon: deleteIcon,
      edits: true,
      execute: (session, _, { actions }) => actions.removeTargets(session)
    },
    [ids.disable]: {
      label: trans.__('Disabled'),
      edits: true,
      isEnabled: session => nodeTargets(session).length > 0,
      isToggled: session =>
        nodeTargets(session).every(id => session.document.nodes[id].disabled),
      execute: (session, _, { actions }) => actions.toggleDisabled(session)
    },
    [ids.connect]: {
      label: trans.__('Connect…'),
      edits: true,
      isEnabled: hasTargets,
      execute: (session, _, { keyboard }) => keyboard.startConnecting(session)
    },
    [ids.undo]: {
      label: trans.__('Undo'),
      icon: undoIcon,
      edits: true,
      isEnabled: session => session.doc.canUndo(),
      execute: session => {
        session.doc.undo();
        keepFocus(session);
      }
    },
    [ids.redo]: {
      label: trans.__('Redo'),
      icon: redoIcon,
      edits: true,
      isEnabled: session => session.doc.canRedo(),
      execute: session => {
        session.doc.redo();
        keepFocus(session);
      }
    }
  };
}

function arrangeCommands(trans: TranslationBundle): {
  [id: string]: IEditorCommand;
} {
  const labels: Record<Alignment, string> = {
    left: trans.__('Align Left'),
    center: trans.__('Align Centers'),
    right: trans.__('Align Right'),
    top: trans.__('Align Top'),
    middle: trans.__('Align Middles'),
    bottom: trans.__('Align Bottom'),
    across: trans.__('Space Out Across'),
    down: trans.__('Space Out Down')
  };
  const isInGroup = (session: Session) => {
    const parents = parentsOf(session.document);
    return targets(session).some(id => parents.has(id));
  };
  const hasGroup = (session: Session) =>
    targets(session).some(id => session.document.nodes[id]?.kind === 'group');
  const hasFolds = (session: Session) =>
    targets(session).some(
      id => canFold(session, id) && !(session.isReadOnly && hasGroup(session))
    );
  return {
    [ids.align]: {
      label: args => labels[(args.how as Alignment) ?? 'left'],
      edits: true,
      args: { how: { type: 'string', enum: [...ALIGNMENTS] } },
      isEnabled: session => targets(session).length > 1,
      execute: (session, args, { arranging }) =>
        arranging.alignTargets(session, (args.how as Alignment) ?? 'left')
    },
    [ids.nudge]: {
      label: trans.__('Move'),
      edits: true,
      isEnabled: hasTargets,
      args: { x: { type: 'number' }, y: { type: 'number' } },
      execute: (session, args, { arranging }) =>
        arranging.nudge(session, Number(args.x ?? 0), Number(args.y ?? 0))
    },
    [ids.layout]: {
      label: trans.__('Lay Out Automatically'),
      icon: layoutIcon,
      edits: true,
      execute: (session, _, { arranging }) => arranging.autoLayout(session)
    },
    [ids.group]: {
      label: trans.__('Group'),
      edits: true,
      isEnabled: hasTargets,
      execute: (session, _, { arranging }) => arranging.groupTargets(session)
    },
    [ids.ungroup]: {
      label: trans.__('Ungroup'),
      edits: true,
      isEnabled: hasGroup,
      isVisible: hasGroup,
      execute: (session, _, { arranging }) => arranging.ungroupTargets(session)
    },
    [ids.leaveGroup]: {
      label: trans.__('Take out of the Group'),
      edits: true,
      isEnabled: isInGroup,
      isVisible: isInGroup,
      execute: (session, _, { arranging }) => arranging.leaveGroup(session)
    },
    [ids.fold]: {
      label: trans.__('Fold or Unfold'),
      isEnabled: hasFolds,
      isVisible: hasFolds,
      execute: (session, _, { arranging }) => {
        for (const id of targets(session)) {
          arranging.toggleFold(session, id);
        }
      }
    }
  };
}

function viewCommands(trans: TranslationBundle): {
  [id: string]: IEditorCommand;
} {
  return {
    [ids.properties]: {
      label: trans.__('Properties'),
      icon: propertiesIcon,
      isToggled: session => session.state.value.panel === 'properties',
      args: { of: { type: 'string', enum: ['node', 'pipeline'] } },
      execute: (session, args) => {
        if (args.of) {
          const id = args.of === 'node' ? target(session) : undefined;
          session.showProperties(id ?? null);
        } else {
          const isOpen = session.state.value.panel === 'properties';
          session.state.update({ panel: isOpen ? null : 'properties' });
        }
      }
    },
    [ids.problems]: {
      label: trans.__('Problems'),
      isToggled: session => session.state.value.panel === 'problems',
      execute: session =>
        session.state.update({
          panel: session.state.value.panel === 'problems' ? null : 'problems'
        })
    },
    [ids.find]: {
      label: trans.__('Find Nodes…'),
      icon: searchIcon,
      execute: session => session.state.update({ isFinding: true })
    },
    [ids.selectAll]: {
      label: trans.__('Select All'),
      execute: (session, _, { actions }) => actions.selectAll(session)
    },
    [ids.enter]: {
      label: trans.__('Open or Connect'),
      execute: (session, _, { keyboard }) => keyboard.enter(session)
    },
    [ids.toggleSelected]: {
      label: trans.__('Select or Deselect'),
      execute: (session, _, { actions }) => actions.toggleSelected(session)
    },
    [ids.escape]: {
      label: trans.__('Deselect or Give Up'),
      execute: (session, _, { keyboard }) => keyboard.escape(session)
    },
    [ids.go]: {
      label: trans.__('Go to Another Node'),
      args: {
        to: {
          type: 'string',
          enum: ['before', 'after', 'up', 'down', 'first']
        }
      },
      execute: (session, args, { keyboard }) =>
        keyboard.go(session, args.to as Direction)
    },
    [ids.zoom]: {
      label: args =>
        ({
          in: trans.__('Zoom In'),
          out: trans.__('Zoom Out'),
          reset: trans.__('Zoom to 100%'),
          fit: trans.__('Fit Everything')
        })[String(args.step ?? 'fit')] ?? '',
      args: { step: { type: 'string', enum: ['in', 'out', 'reset', 'fit'] } },
      execute: (session, { step }) =>
        step === 'in' || step === 'out' || step === 'reset'
          ? session.canvas?.zoom(step)
          : session.canvas?.fit()
    }
  };
}
