import type { JSONValue } from '@lumino/coreutils';

import type { ITrainingField } from '../api';

const WHOLE = /^\d{1,15}$/;

/** What was typed as a value of its kind, null when it is empty; undefined when it is none. */
export function valueOf(
  kind: ITrainingField['kind'],
  text: string
): JSONValue | undefined {
  const trimmed = text.trim();
  if (kind === 'list') {
    const lines = text.split('\n').filter(line => line.trim() !== '');
    return lines.length > 0 ? lines : null;
  }
  if (trimmed === '') {
    return null;
  }
  if (kind === 'whole') {
    return WHOLE.test(trimmed) ? Number(trimmed) : undefined;
  }
  return kind === 'amount' && WHOLE.test(trimmed) ? Number(trimmed) : trimmed;
}

/** Arguments, one in each line. */
export function argumentsText(value: JSONValue): string {
  return Array.isArray(value) ? value.join('\n') : String(value ?? '');
}
