import type { TranslationBundle } from '@jupyterlab/translation';

import type { State } from '../api';
import { briefExpression } from './expressions';
import type { IForEach, Json, Node } from './schema';
import { isObject } from './serialize';

/** What decides if, or how often, a node or a group runs. */
export type Rule =
  | { kind: 'when'; text: string }
  | { kind: 'for_each'; name: string; items: Json; parallel?: number }
  | { kind: 'run_if'; when: 'failed' | 'always' }
  | { kind: 'disabled' };

/** How far the items of a loop are in the run that is shown. */
export interface IItems {
  total: number;
  done: number;
  counts: Partial<Record<State, number>>;
}

/** The rules of a node, as far as they can be read, in the order in which they are decided. */
export function rulesOf(node: Node): Rule[] {
  const rules: Rule[] = [];
  const { disabled, run_if, when, for_each } = node;
  if (disabled === true) {
    rules.push({ kind: 'disabled' });
  }
  if (run_if === 'failed' || run_if === 'always') {
    rules.push({ kind: 'run_if', when: run_if });
  }
  if (typeof when === 'string') {
    rules.push({ kind: 'when', text: when });
  }
  if (isObject(for_each)) {
    const { name, in: items, parallel } = for_each as unknown as IForEach;
    rules.push({ kind: 'for_each', name, items, parallel });
  }
  return rules;
}

/** A rule as a badge has room for it. */
export function ruleBadge(rule: Rule, trans: TranslationBundle): string {
  switch (rule.kind) {
    case 'when':
      return trans.__('when %1', briefExpression(rule.text));
    case 'for_each':
      return trans.__('for each %1', rule.name);
    case 'run_if':
      return rule.when === 'always'
        ? trans.__('always')
        : trans.__('after a failure');
    case 'disabled':
      return trans.__('disabled');
  }
}

/** A rule in whole words, for tooltips and screen readers. */
export function ruleSentence(rule: Rule, trans: TranslationBundle): string {
  switch (rule.kind) {
    case 'when':
      return trans.__('runs when %1', briefExpression(rule.text));
    case 'for_each': {
      const items = itemsText(rule.items, trans);
      return rule.parallel
        ? trans._n(
            'runs once for each %2 in %3, %1 at a time',
            'runs once for each %2 in %3, %1 at a time',
            rule.parallel,
            rule.name,
            items
          )
        : trans.__('runs once for each %1 in %2', rule.name, items);
    }
    case 'run_if':
      return rule.when === 'always'
        ? trans.__('runs always, also after a failure or a stop')
        : trans.__('runs only after a failure');
    case 'disabled':
      return trans.__('is disabled and left out of runs');
  }
}

function itemsText(items: Json, trans: TranslationBundle): string {
  return Array.isArray(items)
    ? trans._n('a list of %1 item', 'a list of %1 items', items.length)
    : briefExpression(String(items ?? ''));
}

export function itemsSentence(items: IItems, trans: TranslationBundle): string {
  const failed = (items.counts.failed ?? 0) + (items.counts.lost ?? 0);
  const done = trans.__('%1 of %2 items done', items.done, items.total);
  return failed ? `${done}, ${trans.__('%1 failed', failed)}` : done;
}
