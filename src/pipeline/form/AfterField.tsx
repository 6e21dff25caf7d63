import * as React from 'react';

import type { ISettingProps } from '../../settings';
import { Row, words, writeValue } from '../../settings';
import { RemoveButton, Select } from '../../ui';
import { endOf } from '../order';
import { useForm } from './context';

/** The nodes before this one: what it says, not what follows from its values. */
export function AfterField(props: ISettingProps): JSX.Element {
  const { set, session, node } = useForm();
  const { trans } = session;
  const after = (Array.isArray(props.value) ? props.value : []).map(writeValue);
  const later = session.after(node ?? '');
  const free = Object.entries(session.document.nodes).filter(
    ([id]) => !after.includes(id) && !later.has(endOf(session.document, id))
  );
  const write = (ids: string[]) =>
    set(props.path, ids.length ? ids : undefined);
  return (
    <Row
      label={words(trans, props.field.schema.title ?? '')}
      help={words(trans, props.field.schema.description ?? '')}
      path={props.path}
      isSet={after.length > 0}
      isGroup
    >
      <div className="jp-Convect-chips">
        {after.map(id => (
          <span key={id} className="jp-Convect-chip">
            {session.document.nodes[id]?.name ?? id}
            <RemoveButton
              label={trans.__('Remove %1', id)}
              onClick={() => write(after.filter(item => item !== id))}
            />
          </span>
        ))}
        {free.length > 0 && (
          <Select
            value=""
            label={trans.__('Add a node that runs before')}
            options={[
              { value: '', label: trans.__('Add…') },
              ...free.map(([id, item]) => ({
                value: id,
                label: item.name ?? id
              }))
            ]}
            onChange={id => write([...after, id])}
          />
        )}
      </div>
    </Row>
  );
}
