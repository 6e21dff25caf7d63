import type { TranslationBundle } from '@jupyterlab/translation';

import type { ICatalog } from './types';

/** What people see; the one that ships is called so in their language. */
export function nameOf(
  catalog: ICatalog | undefined,
  trans: TranslationBundle
): string {
  return catalog?.kind === 'shipped'
    ? trans.__('Included')
    : (catalog?.name ?? '');
}
