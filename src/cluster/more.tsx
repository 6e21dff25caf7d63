import * as React from 'react';

import { Action, useTrans } from '../ui';

/** Rows of a long list that are drawn at first. */
export const FIRST = 20;
const MORE = 100;

/** The way to further rows of a list of which `most` of `count` are drawn. */
export function ShowMore(props: {
  count: number;
  most: number;
  onChange: (most: number) => void;
}): JSX.Element | null {
  const { count, most, onChange } = props;
  const trans = useTrans();
  return count > most ? (
    <Action
      label={trans._n(
        'Show %1 more',
        'Show %1 more',
        Math.min(MORE, count - most)
      )}
      onClick={() => onChange(most + MORE)}
    />
  ) : null;
}
