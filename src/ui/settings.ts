import type { ISettingRegistry } from '@jupyterlab/settingregistry';

/** What the settings of a plugin are called, and each of them, with what it means. */
export interface ISettingsWords {
  title: string;
  description: string;
  properties: Record<string, [title: string, description: string]>;
}

/**
 * Say the words of our settings in the language of the page. JupyterLab itself
 * takes them only from its own language packs.
 */
export function nameSettings(
  { schema }: ISettingRegistry.ISettings,
  { title, description, properties }: ISettingsWords
): void {
  // Beside those of everybody else, and found by its name.
  Object.assign(schema, { title: `Convect: ${title}`, description });
  for (const [name, [title, description]] of Object.entries(properties)) {
    Object.assign(schema.properties?.[name] ?? {}, { title, description });
  }
}
