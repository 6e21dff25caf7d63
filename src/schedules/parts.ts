import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import type { ReadonlyPartialJSONObject } from '@lumino/coreutils';

import { sentenceOf } from '../api';
import { CommandIDs, takes } from '../commands';
import type { IPartsContext } from '../lazycommands';
import { fileMeant } from '../ui/filemeant';
import type { PageKind } from '../ui/pagekind';
import { askBackfill } from './backfill';
import { askSchedule } from './dialog';
import { ScheduleForm } from './form';
import { ScheduleCommands } from './ids';
import { SchedulesPage } from './list';
import { ScheduleModel, ScheduleNews, SchedulesModel } from './model';
import {
  askNotification,
  NotificationForm,
  NotificationsModel,
  NotificationsPage
} from './notifications';
import { SchedulePage } from './page';

/** The id of the page of all schedules. */
const LIST = 'all';
const NOTIFICATIONS = 'notifications';
type AnyPage = SchedulePage | SchedulesPage | NotificationsPage;

/** Pages and dialogs of schedules, loaded when the first of them is needed. */
export class Parts {
  constructor(private readonly context: IPartsContext) {
    this._news = new ScheduleNews(context.app.serviceManager.events);
    this._pages = context.pages.schedule as PageKind<AnyPage>;
    this.addCommands();
  }

  /** The page of a schedule, or of all. */
  async page(id: string): Promise<AnyPage> {
    const { api, app, trans } = this.context;
    const options = { commands: app.commands, trans };
    if (id === NOTIFICATIONS) {
      const model = new NotificationsModel(api, this._news);
      return new NotificationsPage(model, options);
    }
    return id === LIST
      ? new SchedulesPage(new SchedulesModel(api, this._news), options)
      : new SchedulePage(new ScheduleModel(api, this._news, id), options);
  }

  /** Do what a command is for; what goes wrong is told. */
  async execute(
    command: string,
    args: ReadonlyPartialJSONObject
  ): Promise<void> {
    const { app, browser, documents } = this.context;
    const node = app.contextMenuHitTest(each => !!each.dataset.schedule);
    const id = String(args.schedule ?? node?.dataset.schedule ?? '');
    try {
      if (command === ScheduleCommands.schedule) {
        await this.add(fileMeant(app, browser, documents, args.path));
      } else if (command === ScheduleCommands.edit) {
        await this.edit(id);
      } else if (command === ScheduleCommands.backfill) {
        await this.backfill(id);
      } else if (command === ScheduleCommands.notify) {
        await this.notify(id || null);
      } else if (command === ScheduleCommands.notifications) {
        await this._pages.open(NOTIFICATIONS);
      } else if (command === ScheduleCommands.remove) {
        await this.remove(id);
      } else {
        await this._pages.open(command === ScheduleCommands.show ? LIST : id);
      }
    } catch (error) {
      Notification.error(sentenceOf(error), { autoClose: 8000 });
    }
  }

  /** What can be done to a schedule that is in sight. */
  private addCommands(): void {
    const { app, trans } = this.context;
    const labels = {
      [ScheduleCommands.open]: trans.__('Open Schedule'),
      [ScheduleCommands.edit]: trans.__('Edit Schedule…'),
      [ScheduleCommands.backfill]: trans.__('Backfill…'),
      [ScheduleCommands.remove]: trans.__('Remove Schedule…'),
      [ScheduleCommands.notify]: trans.__('Notify…'),
      [ScheduleCommands.notifications]: trans.__('Show Notifications')
    };
    for (const [command, label] of Object.entries(labels)) {
      app.commands.addCommand(command, {
        label,
        describedBy: takes({ schedule: trans.__('The id of the schedule') }),
        execute: args => this.execute(command, args)
      });
    }
  }

  private async add(file: string | null): Promise<void> {
    const { api, trans } = this.context;
    if (!file) {
      Notification.warning(
        trans.__('Open or select a notebook, a script or a pipeline first.'),
        { autoClose: 5000 }
      );
      return;
    }
    const made = await askSchedule(new ScheduleForm(api, file, trans));
    if (made) {
      await this._pages.open(made.id);
    }
  }

  private async edit(id: string): Promise<void> {
    const { api, trans } = this.context;
    const view = await api.schedule(id);
    await askSchedule(new ScheduleForm(api, view.path, trans, view));
  }

  private async backfill(id: string): Promise<void> {
    const { api, app, trans } = this.context;
    const started = await askBackfill(api, await api.schedule(id), trans);
    if (started?.sweep) {
      const { sweep } = started;
      await app.commands.execute(CommandIDs.openSweep, { sweep });
    }
  }

  private async notify(schedule: string | null): Promise<void> {
    const { api, trans } = this.context;
    if (await askNotification(new NotificationForm(api, trans, schedule))) {
      const page = await this._pages.open(NOTIFICATIONS);
      page?.model.refresh();
    }
  }

  private async remove(id: string): Promise<void> {
    const { api, trans } = this.context;
    const { name } = await api.schedule(id);
    const { button } = await showDialog({
      title: trans.__('Remove %1?', name),
      body: trans.__('Its due times are forgotten. Its runs stay.'),
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: trans.__('Remove') })
      ]
    });
    if (button.accept) {
      await api.deleteSchedule(id);
      const pages = this._pages;
      pages.tracker
        .filter(page => pages.idOf(page) === id)
        .forEach(page => page.dispose());
    }
  }

  private _news: ScheduleNews;
  private _pages: PageKind<AnyPage>;
}
