/** The names of the commands about components and their catalogs. */
export namespace CatalogCommands {
  export const show = 'convect:show-components';
  export const newCatalog = 'convect:new-catalog';
  export const editCatalog = 'convect:edit-catalog';
  export const refreshCatalog = 'convect:refresh-catalog';
  export const removeCatalog = 'convect:remove-catalog';
  export const showUpdates = 'convect:show-component-updates';
  export const addToPipeline = 'convect:add-component-to-pipeline';
  export const approve = 'convect:approve-component';
}

/** The kinds of catalogs that can be made in the panel. */
export const KINDS: readonly string[] = ['url', 'file', 'folder'];
