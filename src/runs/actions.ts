import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import {
  Clipboard,
  Dialog,
  InputDialog,
  Notification,
  showDialog
} from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import {
  deleteIcon,
  downloadIcon,
  editIcon,
  folderIcon,
  linkIcon,
  refreshIcon,
  stopIcon
} from '@jupyterlab/ui-components';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { IRunSummary, ISelection, Version } from '../api';
import { sentenceOf } from '../api';
import { CommandIDs, several, takes } from '../commands';
import { pinIcon } from '../icons';
import { IConvectApi, IRunStore, IRunsOpener } from '../tokens';
import { isLive as isLiveState } from '../ui/states';
import { PIN, runsMeant, stepMeant } from './context';
import { linkToRun, linkToSweep } from './links';

export const actions: JupyterFrontEndPlugin<void> = {
  id: 'jupyterlab-convect:actions',
  description: 'Stops, repeats, deletes and links to runs.',
  autoStart: true,
  requires: [IConvectApi, IRunStore, IRunsOpener],
  optional: [ITranslator],
  activate: (
    app: JupyterFrontEnd,
    api: IConvectApi,
    runs: IRunStore,
    opener: IRunsOpener,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const { commands } = app;
    const run = trans.__('The id of the run; the one under the pointer');

    /** Do it and say in one sentence when it could not be done. */
    const attempt = async <T>(work: () => Promise<T>): Promise<T | null> => {
      try {
        return await work();
      } catch (error) {
        const { translated } = await import('../ui/sentences');
        const sentence = translated(sentenceOf(error), trans);
        Notification.error(sentence, { autoClose: 8000 });
        return null;
      }
    };

    /** The files to run again: as told, else asked when they have changed since; null for none. */
    const versionOf = async (
      id: string,
      told: unknown
    ): Promise<Version | null> => {
      if (told === 'today' || told === 'run') {
        return told;
      }
      // What is wrong with the run is said when it is run again.
      const { changes } = await api.changes(id).catch(() => ({ changes: [] }));
      // Not where only outputs and metadata of a notebook differ.
      const edited = changes.filter(item => item.before !== item.after);
      if (edited.length === 0) {
        return 'today';
      }
      const { askVersion } = await import('./again');
      return askVersion(edited, trans);
    };

    const isLive = (id: string) => runs.isLive(id);

    /** What a command is about: with `of: step`, the step whose menu is open. */
    const meant = (
      args: ReadonlyPartialJSONObject
    ): { runs: string[]; step?: string; node?: string } => {
      const found = args.of === 'step' ? stepMeant(app) : null;
      const { step, node } = found ?? args;
      return {
        runs: found ? [found.run] : runsMeant(app, args),
        step: step ? String(step) : undefined,
        node: node ? String(node) : undefined
      };
    };

    commands.addCommand(CommandIDs.stopRun, {
      label: args =>
        args.of === 'step' ? trans.__('Stop This Step') : trans.__('Stop'),
      icon: stopIcon,
      isEnabled: args => meant(args).runs.some(isLive),
      describedBy: takes({
        run,
        step: trans.__('Only this step'),
        of: trans.__('step for the one whose menu is open')
      }),
      execute: async args => {
        const { runs: ids, step } = meant(args);
        for (const id of ids) {
          await attempt(() => api.stopRun(id, step ? { step } : {}));
        }
      }
    });

    commands.addCommand(CommandIDs.rerun, {
      label: args =>
        args.of !== 'step'
          ? trans.__('Run Again')
          : args.mode === 'only'
            ? trans.__('Run Only This Step Again')
            : trans.__('Run Again from Here'),
      icon: refreshIcon,
      isEnabled: args => args.of !== 'step' || !meant(args).runs.some(isLive),
      describedBy: takes({
        run,
        mode: trans.__('all, failed, from, only or upto'),
        node: trans.__('The step that the mode is about'),
        of: trans.__('step for the one whose menu is open'),
        version: trans.__(
          'today or run: which files; asked when they have changed'
        )
      }),
      execute: async args => {
        const { runs: ids, node = null } = meant(args);
        const mode = (args.mode ?? 'all') as ISelection['mode'];
        const selection = { mode, node };
        for (const id of ids) {
          const version = await versionOf(id, args.version);
          const begun =
            version &&
            (await attempt(() => api.rerun(id, { ...selection, version })));
          if (begun) {
            await opener.openRun(begun.id);
          }
        }
      }
    });

    commands.addCommand(CommandIDs.editRun, {
      label: trans.__('Name, Labels and Note…'),
      icon: editIcon,
      describedBy: takes({ run }),
      execute: async args => {
        const [id] = runsMeant(app, args);
        const known = id && (await attempt(() => api.run(id)));
        if (known) {
          const { askWords } = await import('./editing');
          const words = await askWords(known, trans);
          const changed =
            words && (await attempt(() => api.updateRun(id, words)));
          if (changed) {
            runs.take([changed]);
          }
        }
      }
    });

    const isPinned = (id: string) => PIN in (runs.summary(id)?.labels ?? {});
    commands.addCommand(CommandIDs.pinRun, {
      label: args =>
        runsMeant(app, args).every(isPinned)
          ? trans.__('Unpin')
          : trans.__('Pin'),
      icon: pinIcon,
      describedBy: takes({ run }),
      execute: async args => {
        const ids = runsMeant(app, args);
        const pins = !ids.every(isPinned);
        for (const id of ids) {
          const known = runs.summary(id) ?? (await attempt(() => api.run(id)));
          const labels: IRunSummary['labels'] = { ...known?.labels, [PIN]: '' };
          if (!pins) {
            delete labels[PIN];
          }
          const changed =
            known && (await attempt(() => api.updateRun(id, { labels })));
          if (changed) {
            runs.take([changed]);
          }
        }
      }
    });

    const sweepMeant = (args: ReadonlyPartialJSONObject) =>
      args.sweep
        ? String(args.sweep)
        : app.contextMenuHitTest(node => !!node.dataset.sweep)?.dataset.sweep;
    const sweepArgs = takes({ sweep: trans.__('The id of the sweep') });
    const isSweepLive = (args: ReadonlyPartialJSONObject) => {
      const id = sweepMeant(args);
      const sweep = runs.sweeps?.find(each => each.id === id);
      return sweep !== undefined && isLiveState(sweep.state);
    };

    commands.addCommand(CommandIDs.stopSweep, {
      label: trans.__('Stop Sweep'),
      icon: stopIcon,
      isEnabled: isSweepLive,
      describedBy: sweepArgs,
      execute: async args => {
        const id = sweepMeant(args);
        if (id) {
          await attempt(() => api.stopSweep(id));
          runs.refreshSweeps();
        }
      }
    });

    commands.addCommand(CommandIDs.renameSweep, {
      label: trans.__('Rename Sweep…'),
      icon: editIcon,
      describedBy: sweepArgs,
      execute: async args => {
        const id = sweepMeant(args);
        const known = id && (await attempt(() => api.sweep(id)));
        if (known) {
          const answer = await InputDialog.getText({
            title: trans.__('Rename the sweep'),
            text: known.name,
            okLabel: trans.__('Rename')
          });
          const name = answer.value?.trim();
          if (answer.button.accept && name && name !== known.name) {
            await attempt(() => api.updateSweep(id, { name }));
            runs.refreshSweeps();
          }
        }
      }
    });

    commands.addCommand(CommandIDs.deleteSweep, {
      label: trans.__('Delete Sweep'),
      icon: deleteIcon,
      isEnabled: args => !isSweepLive(args),
      describedBy: sweepArgs,
      execute: async args => {
        const sweep = sweepMeant(args);
        const all = sweep && (await attempt(() => runs.all({ sweep })));
        if (all) {
          await commands.execute(CommandIDs.deleteRun, {
            runs: all.map(({ id }) => id)
          });
          runs.refreshSweeps();
        }
      }
    });

    commands.addCommand(CommandIDs.putFiles, {
      label: trans.__('Put Files into the Project…'),
      icon: folderIcon,
      isEnabled: args => !runsMeant(app, args).some(isLive),
      describedBy: takes({ run }),
      execute: async args => {
        const { putFiles } = await import('./putting');
        for (const id of runsMeant(app, args)) {
          await attempt(() => putFiles(api, id, trans));
        }
      }
    });

    commands.addCommand(CommandIDs.deleteRun, {
      label: trans.__('Delete'),
      icon: deleteIcon,
      isEnabled: args => !runsMeant(app, args).every(isLive),
      describedBy: takes({
        run,
        runs: several(trans.__('The ids of several runs'))
      }),
      execute: async args => {
        const ids = runsMeant(app, args);
        if (ids.length === 0) {
          return;
        }
        const answer = await showDialog({
          title: trans._n('Delete %1 run?', 'Delete %1 runs?', ids.length),
          body: trans.__(
            'Executed notebooks, logs and files are deleted too. The sources stay.'
          ),
          buttons: [
            Dialog.cancelButton(),
            Dialog.warnButton({ label: trans.__('Delete') })
          ]
        });
        if (answer.button.accept) {
          for (const id of ids) {
            await attempt(() => api.deleteRun(id));
          }
        }
      }
    });

    commands.addCommand(CommandIDs.copyLink, {
      label: trans.__('Copy Link'),
      icon: linkIcon,
      describedBy: takes({ run, sweep: trans.__('The id of the sweep') }),
      execute: args => {
        const { baseUrl } = api.settings;
        const links = args.sweep
          ? [linkToSweep(baseUrl, String(args.sweep))]
          : runsMeant(app, args).map(id => linkToRun(baseUrl, id));
        for (const link of links) {
          Clipboard.copyToSystem(link);
          Notification.info(trans.__('The link is in the clipboard.'), {
            autoClose: 3000
          });
        }
      }
    });

    commands.addCommand(CommandIDs.downloadRun, {
      label: trans.__('Download Everything'),
      icon: downloadIcon,
      describedBy: takes({ run }),
      execute: args => {
        for (const id of runsMeant(app, args)) {
          window.open(api.url('archive', id));
        }
      }
    });
  }
};
