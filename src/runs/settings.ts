import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { TranslationBundle } from '@jupyterlab/translation';

export const SETTINGS = 'jupyterlab-convect:plugin';

/**
 * Say the words of our settings in the language of the page. JupyterLab itself
 * takes them only from its own language packs.
 */
export function translateSettings(
  { schema }: ISettingRegistry.ISettings,
  trans: TranslationBundle
): void {
  const words: Record<string, [title: string, description: string]> = {
    openOnRun: [
      trans.__('Show a run when it begins'),
      trans.__(
        'Its page opens beside the notebook. A pipeline shows it in its editor.'
      )
    ],
    notifyInLab: [
      trans.__('Say in JupyterLab when a run ends'),
      trans.__('With what failed and the last lines of its log.')
    ],
    notifyInBrowser: [
      trans.__('Say it as a notification of the browser, too'),
      trans.__('The browser asks whether it may.')
    ]
  };
  schema.description = trans.__('Settings of jupyterlab-convect.');
  for (const [name, [title, description]] of Object.entries(words)) {
    Object.assign(schema.properties?.[name] ?? {}, { title, description });
  }
}
