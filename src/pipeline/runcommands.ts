import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Notification } from '@jupyterlab/apputils';
import type { TranslationBundle } from '@jupyterlab/translation';
import {
  fileIcon,
  fileUploadIcon,
  imageIcon,
  runIcon,
  stopIcon
} from '@jupyterlab/ui-components';

import { sentenceOf } from '../api';
import { CatalogCommands } from '../catalog/ids';
import { CommandIDs } from '../commands';
import type { Begun } from '../runs/dialog';
import type { IEditorCommand } from './commands';
import { EditorCommands as ids } from './ids';
import type { Json } from './schema';
import type { Session } from './session';
import { target, targets } from './targets';

type Mode = 'all' | 'only' | 'from' | 'upto';

/** Commands that run the pipeline, and those that look at files and results. */
export function runCommands(
  app: JupyterFrontEnd,
  trans: TranslationBundle
): { [id: string]: IEditorCommand } {
  const labels: Record<Mode, string> = {
    all: trans.__('Run Pipeline'),
    only: trans.__('Run This Node'),
    from: trans.__('Run from Here'),
    upto: trans.__('Run up to Here')
  };
  const isOnNode = (session: Session) =>
    (target(session) ?? '') in session.document.nodes;
  return {
    [ids.run]: {
      label: args => labels[(args.mode as Mode) ?? 'all'],
      icon: args => (args.mode ? undefined : runIcon),
      args: { mode: { type: 'string', enum: ['only', 'from', 'upto'] } },
      execute: (session, args) =>
        run(app, session, (args.mode as Mode | undefined) ?? 'all')
    },
    [ids.stop]: {
      label: trans.__('Stop the Run'),
      icon: stopIcon,
      isEnabled: session => session.runs.isLive,
      execute: stop
    },
    [ids.openStep]: {
      label: trans.__('Open Log and Results'),
      isVisible: session =>
        session.runs.store.value.run !== null && isOnNode(session),
      isEnabled: isOnNode,
      execute: session => session.openStep(target(session)!)
    },
    [ids.openFile]: {
      label: trans.__('Open File'),
      icon: fileIcon,
      isVisible: session =>
        targets(session).some(
          id => 'path' in (session.document.nodes[id] ?? {})
        ),
      execute: async session => {
        for (const id of targets(session)) {
          await session.openFile(id);
        }
      }
    },
    [ids.approve]: {
      label: trans.__('Approve to Run without a Container…'),
      isVisible: session => definitionOf(session) !== undefined,
      execute: session =>
        app.commands.execute(CatalogCommands.approve, {
          definition: JSON.stringify(definitionOf(session))
        })
    },
    [ids.updateComponent]: {
      label: trans.__('Update Component'),
      edits: true,
      isVisible: session => definitionOf(session) !== undefined,
      execute: session => updateTarget(session)
    },
    [ids.exportPicture]: {
      label: args =>
        args.format === 'png'
          ? trans.__('Export as PNG')
          : trans.__('Export as SVG'),
      icon: imageIcon,
      args: { format: { type: 'string', enum: ['svg', 'png'] } },
      execute: async (session, args) => {
        const { exportPicture } = await import('./picture');
        await exportPicture(session, args.format === 'png' ? 'png' : 'svg');
      }
    },
    [ids.exportToKfp]: {
      label: trans.__('Export to Kubeflow Pipelines'),
      icon: fileIcon,
      execute: async session => {
        const { exportToKfp } = await import('./download');
        await exportToKfp(session);
      }
    },
    [ids.publish]: {
      label: trans.__('Publish to Kubeflow Pipelines…'),
      icon: fileUploadIcon,
      execute: async session => {
        const { publish } = await import('./publish');
        await publish(session);
      }
    }
  };
}

/** Bring the component that is meant to the version of the catalogs, and say what came of it. */
async function updateTarget(session: Session): Promise<void> {
  const { trans } = session;
  try {
    const { updateComponent } = await import('./components');
    const count = await updateComponent(session, targets(session)[0]);
    Notification.info(
      count
        ? trans._n(
            '%1 node has the newer version of the component.',
            '%1 nodes have the newer version of the component.',
            count
          )
        : trans.__('The catalogs have no other version of this component.'),
      { autoClose: 4000 }
    );
  } catch (error) {
    Notification.error(sentenceOf(error));
  }
}

/** The definition of the component that is meant, if it is one. */
function definitionOf(session: Session): Json | undefined {
  const { nodes, components } = session.document;
  const node = nodes[targets(session)[0]];
  return node?.kind === 'component' ? components?.[node.component] : undefined;
}

/**
 * The dialog asks what to run with; the run that comes of it is shown. A part is
 * run as the last run was, taking over what that one made.
 */
async function run(
  app: JupyterFrontEnd,
  session: Session,
  mode: Mode
): Promise<void> {
  const { context, runs, trans } = session;
  const last = runs.store.value.run ?? runs.store.value.runs[0];
  const part = { mode, node: target(session), ...(last && { of: last.id }) };
  const begun: Begun | null = await app.commands.execute(
    CommandIDs.runAsPipeline,
    { path: context.path, ...(mode === 'all' ? {} : part) }
  );
  if (begun?.kind === 'run') {
    runs.show(begun.id);
    session.announce(trans.__('%1 runs now.', begun.name));
  }
}

async function stop(session: Session): Promise<void> {
  const { run } = session.runs.store.value;
  if (run) {
    try {
      await session.api.stopRun(run.id);
      session.announce(session.trans.__('Stopping.'));
    } catch (error) {
      Notification.error(sentenceOf(error));
    }
  }
}
