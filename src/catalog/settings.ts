import type { TranslationBundle } from '@jupyterlab/translation';

import { KINDS } from './ids';
import type { ICatalogSettings } from './types';

/** What somebody has typed into the form of a catalog. */
export interface IFormValues {
  name: string;
  /** One address a line. */
  urls: string;
  path: string;
  /** With commas between them. */
  categories: string;
  auth: 'none' | 'env' | 'keyring';
  env: string;
  secret: string;
  key: string;
  scheme: string;
  /** `dead address = address`, one a line. */
  replacements: string;
  /** Seconds between two looks for changes; empty when they are asked for. */
  refresh: string;
  /** What a third party's source wants to know. */
  options: NonNullable<ICatalogSettings['options']>;
}

export const NO_VALUES: IFormValues = {
  name: '',
  urls: '',
  path: '',
  categories: '',
  auth: 'none',
  env: '',
  secret: '',
  key: '',
  scheme: 'Bearer',
  replacements: '',
  refresh: '',
  options: {}
};

/** What is wrong with a field, in a sentence. */
export type Complaints = Partial<Record<keyof IFormValues, string>>;

export function valuesOf(settings: ICatalogSettings): IFormValues {
  const { auth } = settings;
  return {
    name: settings.name,
    urls: (settings.urls ?? []).join('\n'),
    path: settings.path ?? '',
    categories: (settings.categories ?? []).join(', '),
    auth: auth?.env ? 'env' : auth ? 'keyring' : 'none',
    env: auth?.env ?? '',
    secret: auth?.name ?? '',
    key: auth?.key ?? '',
    scheme: auth?.scheme ?? 'Bearer',
    replacements: Object.entries(settings.replacements ?? {})
      .map(pair => pair.join(' = '))
      .join('\n'),
    refresh: settings.refresh ? String(settings.refresh) : '',
    options: settings.options ?? {}
  };
}

/** A kind that a third party has added: its source says what it wants to know. */
export function isForeign(kind: string): boolean {
  return !KINDS.includes(kind);
}

export function settingsOf(
  kind: string,
  values: IFormValues
): ICatalogSettings {
  const settings: ICatalogSettings = {
    name: values.name.trim(),
    kind,
    categories: [...new Set(split(values.categories, /[,，;；\n]/))]
  };
  if (kind === 'url') {
    settings.urls = split(values.urls, /\s+/);
    settings.auth = authOf(values);
    settings.replacements = Object.fromEntries(pairsOf(values.replacements));
    settings.refresh = refreshOf(values);
  } else if (isForeign(kind)) {
    settings.options = values.options;
    settings.refresh = refreshOf(values);
  } else {
    settings.path = values.path.trim();
  }
  return settings;
}

/** What has to be mended before the server is asked. */
export function complaintsOf(
  kind: string,
  values: IFormValues,
  trans: TranslationBundle
): Complaints {
  const complaints: Complaints = {};
  if (!values.name.trim()) {
    complaints.name = trans.__('Give the catalog a name.');
  }
  if (kind === 'url') {
    const urls = split(values.urls, /\s+/);
    const wrong = urls.find(url => !isAddress(url));
    if (urls.length === 0) {
      complaints.urls = trans.__('Give at least one address.');
    } else if (wrong !== undefined) {
      complaints.urls = trans.__(
        '%1 is not a web address; it begins with https:// or http://.',
        wrong
      );
    }
    const halves = pairsOf(values.replacements).flat();
    if (!halves.every(isAddress)) {
      complaints.replacements = trans.__(
        'Each line is a dead address, an equals sign and the address to read instead.'
      );
    }
    if (values.auth === 'env' && !values.env.trim()) {
      complaints.env = trans.__('Name the environment variable.');
    }
    if (values.auth === 'keyring' && !values.secret.trim()) {
      complaints.secret = trans.__('Name the secret.');
    }
    if (values.auth === 'keyring' && !values.key.trim()) {
      complaints.key = trans.__('Name the key in the secret.');
    }
  } else if (!isForeign(kind) && !values.path.trim()) {
    complaints.path =
      kind === 'file'
        ? trans.__('Choose a file.')
        : trans.__('Choose a folder.');
  }
  return complaints;
}

function refreshOf({ refresh }: IFormValues): number | null {
  return refresh ? Number(refresh) : null;
}

function authOf(values: IFormValues): ICatalogSettings['auth'] {
  const scheme = values.scheme.trim();
  switch (values.auth) {
    case 'none':
      return null;
    case 'env':
      return { env: values.env.trim(), scheme };
    case 'keyring':
      return { name: values.secret.trim(), key: values.key.trim(), scheme };
  }
}

/** An address holds an equals sign of its own at times, but never a space. */
function pairsOf(text: string): [string, string][] {
  return split(text, /\n/).map(line => {
    const [dead, ...rest] = line.split(/\s+=\s+/);
    return [dead, rest.join(' = ')];
  });
}

function isAddress(text: string): boolean {
  return /^https?:\/\/[^/\s]\S*$/.test(text);
}

function split(text: string, separator: RegExp): string[] {
  return text
    .split(separator)
    .map(item => item.trim())
    .filter(Boolean);
}
