/** The names of the commands about schedules, for menus, the palette, settings and tests. */
export namespace ScheduleCommands {
  export const show = 'convect:show-schedules';
  export const open = 'convect:open-schedule';
  export const schedule = 'convect:schedule';
  export const edit = 'convect:edit-schedule';
  export const backfill = 'convect:backfill-schedule';
  export const remove = 'convect:remove-schedule';
  export const notify = 'convect:notify';
  export const notifications = 'convect:show-notifications';
}
