import type { TranslationBundle } from '@jupyterlab/translation';
import type { JSONObject, ReadonlyPartialJSONObject } from '@lumino/coreutils';

import type { ISettingsWords } from '../ui/settings';

/** What the form begins with where nothing is remembered. */
export interface IPreferences {
  runtime: string;
  settings: JSONObject;
}

/** The user's settings in the words of a request. */
export function preferencesOf(values: ReadonlyPartialJSONObject): IPreferences {
  const resources: JSONObject = {};
  for (const name of ['cpu', 'memory', 'gpu']) {
    const amount = values[name];
    const isGiven = typeof amount === 'string' ? amount.trim() : amount;
    if (isGiven) {
      resources[name] = amount as string | number;
    }
  }
  const settings: JSONObject = {};
  if (typeof values.image === 'string' && values.image.trim()) {
    settings.image = values.image.trim();
  }
  if (Object.keys(resources).length > 0) {
    settings.resources = resources;
  }
  const { runtime } = values;
  return { runtime: typeof runtime === 'string' ? runtime : '', settings };
}

/** What the settings are called. */
export function preferenceWords(trans: TranslationBundle): ISettingsWords {
  return {
    title: trans.__('Run as Pipeline'),
    description: trans.__(
      'The initial values of the form behind “Run as pipeline”.'
    ),
    properties: {
      runtime: [
        trans.__('Where to run'),
        trans.__(
          'local, kubernetes or another runtime; empty for the default of the server.'
        )
      ],
      image: [
        trans.__('Image'),
        trans.__('The container image, where runs have one.')
      ],
      cpu: [trans.__('CPU'), trans.__('Cores for each node: 2 or 500m.')],
      memory: [trans.__('Memory'), trans.__('Memory for each node: 2Gi.')],
      gpu: [trans.__('GPUs'), trans.__('GPUs for each node.')]
    }
  };
}
