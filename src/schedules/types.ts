/** What the REST interface says of schedules, by the names that are used here. */
import type { IRequest } from '../api';
import type { Components } from '../api/schema';

type Schemas = Components['schemas'];

export type IClock = Schemas['ClockBody'];
export type ITrigger = Schemas['TriggerBody'];
export type INotification = Schemas['NotificationView'];
export type INotificationBody = Schemas['NotificationBody'];
export type IUpcoming = Schemas['Upcoming'];
export type IKeeper = Schemas['ScheduleKeeper'];
export type ILedgerLine = Schemas['LedgerLine'];
export type IDay = Schemas['CalendarDay'];
export type IScheduleBody = Schemas['ScheduleBody'];
export type IBackfill = Schemas['BackfillBody'];
export type IScheduleSummary = Schemas['ScheduleSummary'];
export type ISchedule = Schemas['ScheduleView'];

/** What was started. */
export interface IStarted {
  run: string | null;
  sweep: string | null;
}

/** How to call a schedule. */
export interface IHook {
  address: string;
  token: string;
}

/** The last line of the ledger. */
export function lastOf(schedule: IScheduleSummary): ILedgerLine | null {
  return schedule.last as unknown as ILedgerLine | null;
}

/** What makes a schedule due beside its clock. */
export function triggerOf(schedule: IScheduleSummary): ITrigger {
  return (schedule.trigger ?? {}) as unknown as ITrigger;
}

/** What a schedule asks for at each due time. */
export function requestOf(schedule: ISchedule): IRequest {
  return schedule.request as unknown as IRequest;
}

/** The sweep that each due time makes; null when it makes a run. */
export function sweepIn(schedule: ISchedule): Schemas['ScheduledSweep'] {
  return schedule.sweep as Schemas['ScheduledSweep'];
}
