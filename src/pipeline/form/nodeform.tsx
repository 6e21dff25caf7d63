import * as React from 'react';

import type { ISettingProps, IFormContext } from '../../settings';
import type { Session } from '../session';
import { AfterField } from './AfterField';
import type { INodeForm } from './context';
import { Parameters } from './Parameters';
import { pickFiles } from './pick';
import { ConditionField, LoopField, RunIfField } from './RuleFields';

const WIDGETS = {
  nodes: AfterField,
  condition: ConditionField,
  loop: LoopField,
  run_if: RunIfField,
  parameters: () => <Parameters property="parameters" />,
  inputs: () => <Parameters property="inputs" />
} satisfies { [widget: string]: React.ComponentType<ISettingProps> };

/** What the form of a node, or with null of the pipeline, knows from its editor. */
export function nodeForm(
  session: Session,
  node: string | null,
  rest: Pick<IFormContext, 'isReadOnly' | 'set' | 'problems' | 'isMixed'>
): INodeForm {
  const { trans, docManager, openSections } = session;
  const { nodes, defaults } = session.document;
  const used = [defaults, ...Object.values(nodes)]
    .map(item => (item && 'image' in item ? item.image : undefined))
    .filter(image => typeof image === 'string');
  const { specs } = docManager.services.kernelspecs;
  return {
    session,
    node,
    trans,
    openSections,
    images: [...new Set([...used, ...session.images])],
    offering: session.offering,
    kernels: Object.keys(specs?.kernelspecs ?? {}),
    env: node === null ? undefined : session.factsOf(node)?.env,
    // Globs start from the folder of the node's file, other paths from the pipeline's.
    pick: options =>
      pickFiles(session, {
        ...options,
        from: options.several ? session.folderOf(node) : undefined
      }),
    open: node === null ? undefined : () => void session.openFile(node),
    widgets: WIDGETS,
    ...rest
  };
}
