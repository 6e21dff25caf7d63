/** The names of all commands, for menus, the palette, settings and tests. */
export namespace CommandIDs {
  export const showRuns = 'convect:show-runs';
}

/** The category in the palette and the section in the launcher. */
export const CATEGORY = 'Convect';
