import type {
  JupyterFrontEnd,
  JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ILayoutRestorer, IRouter } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import type { Widget } from '@lumino/widgets';

import { CommandIDs, several, takes } from '../commands';
import type { IBegun } from '../tokens';
import { IPlanViewFactory, IRunStore, IRunsOpener } from '../tokens';
import { runsMeant } from './context';
import { LINK, linkToRun, linkToSweep, SWEEP_LINK } from './links';
import { beside, PageKind } from '../ui/pagekind';
import { nameSettings } from '../ui/settings';

export const opener: JupyterFrontEndPlugin<IRunsOpener> = {
  id: 'jupyterlab-convect:opener',
  description: 'Opens the pages of runs and sweeps, and compares runs.',
  autoStart: true,
  requires: [IRunStore],
  optional: [
    IPlanViewFactory,
    ILayoutRestorer,
    IRouter,
    ISettingRegistry,
    ITranslator
  ],
  provides: IRunsOpener,
  activate: (
    app: JupyterFrontEnd,
    runs: IRunStore,
    planViews: IPlanViewFactory | null,
    restorer: ILayoutRestorer | null,
    router: IRouter | null,
    registry: ISettingRegistry | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('jupyterlab_convect');
    const { commands, shell } = app;
    const options = { commands, trans };
    const { baseUrl } = runs.api.settings;
    const runPages = new PageKind(
      shell,
      'run',
      async id => {
        const { RunModel, RunPage } = await import('./page');
        return new RunPage(new RunModel(runs, id), { ...options, planViews });
      },
      id => linkToRun(baseUrl, id)
    );
    const sweepPages = new PageKind(
      shell,
      'sweep',
      async id => {
        const { SweepModel, SweepPage } = await import('./sweep');
        return new SweepPage(new SweepModel(runs, id), options);
      },
      id => linkToSweep(baseUrl, id)
    );
    const comparePages = new PageKind(shell, 'compare', async ids => {
      const { CompareModel, ComparePage } = await import('./compare');
      const model = new CompareModel(runs, ids.split(','));
      return new ComparePage(model, options);
    });
    // What is added and taken away is there again after a reload.
    comparePages.tracker.widgetAdded.connect((_, page) => {
      page.content.model.changed.connect(
        () => void comparePages.tracker.save(page)
      );
    });

    const othersPages = new PageKind(shell, 'others', async runtime => {
      const { OthersModel, OthersPage } = await import('./others');
      const model = new OthersModel(runs.api, runtime);
      return new OthersPage(model, { ...options, planViews });
    });

    const loading = registry?.load(opener.id).catch(() => null);
    void loading?.then(async settings => {
      if (settings) {
        const { pageWords } = await import('./settingwords');
        nameSettings(settings, pageWords(trans));
      }
    });
    const opensOnRun = async (): Promise<boolean> =>
      (await loading)?.get('openOnRun').composite !== false;
    const place = () => {
      const pages: Widget[] = [];
      runPages.tracker.forEach(page => pages.push(page));
      sweepPages.tracker.forEach(page => pages.push(page));
      return beside(shell, pages);
    };
    const noticeBegun = async ({ kind, id, name }: IBegun): Promise<void> => {
      const { notice } = await import('./notices');
      const message =
        kind === 'sweep'
          ? trans.__('The sweep %1 has begun.', name)
          : trans.__('%1 runs now.', name);
      const callback = () =>
        void (kind === 'sweep' ? sweepPages.open(id) : runPages.open(id));
      notice(id, message, 'info', { label: trans.__('Open'), callback });
    };

    const service: IRunsOpener = {
      showBegun: async (begun, { isShown } = {}) => {
        if (isShown && begun.kind === 'run') {
          return;
        }
        if (!(await opensOnRun())) {
          await noticeBegun(begun);
        } else if (begun.kind === 'sweep') {
          await sweepPages.open(begun.id, place());
        } else {
          await runPages.open(begun.id, place());
        }
      },
      openRun: async (id, at) => {
        const page = await runPages.open(id);
        if (at) {
          page?.model.look(at);
        }
      },
      openSweep: async id => {
        await sweepPages.open(id);
      },
      compare: async ids => {
        await comparePages.open(ids.join(','));
      }
    };

    commands.addCommand(CommandIDs.openRun, {
      label: trans.__('Open Run'),
      describedBy: takes({
        run: trans.__('The id of the run'),
        step: trans.__('A step of it')
      }),
      execute: async args => {
        const at = args.step ? { step: String(args.step) } : undefined;
        for (const run of runsMeant(app, args)) {
          await service.openRun(run, at);
        }
      }
    });
    commands.addCommand(CommandIDs.openSweep, {
      label: trans.__('Open Sweep'),
      describedBy: takes({ sweep: trans.__('The id of the sweep') }),
      execute: async args => {
        const node = app.contextMenuHitTest(each => !!each.dataset.sweep);
        const sweep = args.sweep ?? node?.dataset.sweep;
        if (sweep) {
          await service.openSweep(String(sweep));
        }
      }
    });
    commands.addCommand(CommandIDs.compareRuns, {
      label: trans.__('Compare Runs'),
      describedBy: takes({ runs: several(trans.__('The ids of the runs')) }),
      execute: args => service.compare(runsMeant(app, args))
    });

    commands.addCommand(CommandIDs.showOthers, {
      label: trans.__('Show Runs Made Elsewhere'),
      describedBy: takes({ runtime: trans.__('The name of the runtime') }),
      execute: async ({ runtime }) => {
        await othersPages.open(String(runtime ?? 'kfp'));
      }
    });

    if (restorer) {
      void restorer.restore(othersPages.tracker, {
        command: CommandIDs.showOthers,
        args: page => ({ runtime: othersPages.idOf(page) }),
        name: page => othersPages.idOf(page)
      });
      void restorer.restore(runPages.tracker, {
        command: CommandIDs.openRun,
        args: page => ({ run: runPages.idOf(page) }),
        name: page => runPages.idOf(page)
      });
      void restorer.restore(sweepPages.tracker, {
        command: CommandIDs.openSweep,
        args: page => ({ sweep: sweepPages.idOf(page) }),
        name: page => sweepPages.idOf(page)
      });
      void restorer.restore(comparePages.tracker, {
        command: CommandIDs.compareRuns,
        args: page => ({ runs: page.content.model.ids }),
        name: page => comparePages.idOf(page)
      });
    }

    if (router) {
      commands.addCommand(CommandIDs.followLink, {
        label: trans.__('Open Linked Run'),
        describedBy: takes({ search: trans.__('The query of the address') }),
        execute: async ({ search }) => {
          const query = new URLSearchParams(String(search ?? ''));
          const [run, sweep] = [query.get(LINK), query.get(SWEEP_LINK)];
          const url = new URL(window.location.href);
          url.searchParams.delete(LINK);
          url.searchParams.delete(SWEEP_LINK);
          window.history.replaceState({}, '', url);
          // Not awaited: the router holds up the start until its commands are done.
          void app.restored.then(() =>
            run ? service.openRun(run) : service.openSweep(String(sweep))
          );
        }
      });
      router.register({
        command: CommandIDs.followLink,
        pattern: new RegExp(`[?&](${LINK}|${SWEEP_LINK})=`)
      });
    }
    return service;
  }
};
