import { sentenceOf } from '../api';
import type { IEntry } from './types';

/** One line of the list. */
export type CatalogRow =
  | {
      kind: 'category';
      key: string;
      name: string;
      count: number;
      isOpen: boolean;
    }
  | {
      kind: 'component';
      key: string;
      entry: IEntry;
      /** Its place in the category, from 1, and how many there are. */
      position: number;
      count: number;
    };

/** An entry with the text that is searched, in lower case. */
export interface ISearchable {
  entry: IEntry;
  name: string;
  text: string;
}

/** Prepare once what every key stroke looks through: by name, broken ones last. */
export function prepare(entries: readonly IEntry[]): ISearchable[] {
  const { compare } = new Intl.Collator(undefined, {
    numeric: true,
    sensitivity: 'base'
  });
  return [...entries]
    .sort(
      (one, other) =>
        Number(!one.digest) - Number(!other.digest) ||
        compare(one.name, other.name)
    )
    .map(entry => ({
      entry,
      name: `${entry.name}\n${sentenceOf(entry.name)}`.toLowerCase(),
      text: [entry.name, entry.description]
        .flatMap(text => [text, sentenceOf(text)])
        .concat(entry.inputs)
        .join('\n')
        .toLowerCase()
    }));
}

export function wordsOf(text: string): string[] {
  return text.toLowerCase().split(/\s+/).filter(Boolean);
}

/** Those that hold every word; the ones that hold them in their name come first. */
export function find(
  items: readonly ISearchable[],
  words: readonly string[]
): IEntry[] {
  if (words.length === 0) {
    return items.map(item => item.entry);
  }
  const inName: IEntry[] = [];
  const elsewhere: IEntry[] = [];
  for (const { entry, name, text } of items) {
    if (words.every(word => name.includes(word))) {
      inName.push(entry);
    } else if (words.every(word => text.includes(word))) {
      elsewhere.push(entry);
    }
  }
  return [...inName, ...elsewhere];
}

/** What identifies a component in its catalogs. */
export function keyOf(entry: IEntry): string {
  return JSON.stringify([entry.catalog, entry.source, entry.part]);
}

/**
 * The rows of the list: each category with its components. A component of
 * several categories is in each of them; one of none is in the last, which has
 * an empty name.
 */
export function rowsOf(
  entries: readonly IEntry[],
  isOpen: (category: string) => boolean
): CatalogRow[] {
  const groups = new Map<string, IEntry[]>();
  for (const entry of entries) {
    for (const name of entry.categories.length ? entry.categories : ['']) {
      const group = groups.get(name);
      if (group) {
        group.push(entry);
      } else {
        groups.set(name, [entry]);
      }
    }
  }
  const names = [...groups.keys()].sort(
    (one, other) =>
      Number(one === '') - Number(other === '') || one.localeCompare(other)
  );
  return names.flatMap(name => {
    const group = groups.get(name)!;
    const open = isOpen(name);
    const heading: CatalogRow = {
      kind: 'category',
      key: `category ${name}`,
      name,
      count: group.length,
      isOpen: open
    };
    const members = group.map<CatalogRow>((entry, index) => ({
      kind: 'component',
      key: `${name} ${keyOf(entry)}`,
      entry,
      position: index + 1,
      count: group.length
    }));
    return open ? [heading, ...members] : [heading];
  });
}
