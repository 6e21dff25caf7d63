import * as React from 'react';

import { sentenceOf } from '../../api';
import { Form, Row } from '../../settings';
import { Select, TextArea, TextInput } from '../../ui';
import { putInto } from '../arranging';
import { fetchComponent } from '../components';
import { renameNode } from '../edits';
import { useForm } from '../form/context';
import { iconOf } from '../nodeicon';
import { kindLabel } from '../canvas/flow';
import { isGroup, isInside, nameOf, parentsOf } from '../graph';

export function NodeProperties({ id }: { id: string }): JSX.Element {
  const { session } = useForm();
  const { document } = session;
  const node = document.nodes[id];
  const view = session.views.get(id)!;
  const icon = iconOf(view);
  return (
    <>
      <h2 className="jp-Convect-formTitle">
        <icon.react tag="span" />
        {view.name}
        <span className="jp-Convect-tag">
          {kindLabel(view.kind, session.trans)}
        </span>
      </h2>
      {node.kind === 'component' && view.isMissing && (
        <MissingComponent id={id} source={node.source} />
      )}
      <Form
        definition={node.kind}
        value={node}
        inherited={document.defaults}
        isShown={name =>
          !['distributed', 'dask'].includes(name) ||
          node.kind !== 'component' ||
          name in node
        }
        head={
          <>
            <IdField id={id} />
            <GroupField id={id} />
          </>
        }
      />
      {node.kind === 'group' && <Members ids={node.members} />}
    </>
  );
}

/** A component whose definition the file does not have. */
function MissingComponent(props: { id: string; source?: string }): JSX.Element {
  const { session, isReadOnly } = useForm();
  const { trans } = session;
  const [state, setState] = React.useState<string | null>(null);
  const [isBusy, setBusy] = React.useState(false);
  const fetch = async () => {
    setBusy(true);
    setState(null);
    try {
      await fetchComponent(session, props.id);
    } catch (error) {
      setState(sentenceOf(error));
      setBusy(false);
    }
  };
  return (
    <div className="jp-Convect-message" data-severity="error" role="alert">
      <p>{trans.__('The definition of this component is not in the file.')}</p>
      {props.source && <p className="jp-Convect-aside">{props.source}</p>}
      {!isReadOnly && (
        <button
          className="jp-mod-styled jp-mod-accept"
          disabled={isBusy}
          onClick={() => void fetch()}
        >
          {isBusy ? trans.__('Fetching…') : trans.__('Fetch it')}
        </button>
      )}
      {state !== null && <p>{state}</p>}
    </div>
  );
}

/** The id is what expressions call a node; changing it changes them. */
function IdField({ id }: { id: string }): JSX.Element {
  const { session } = useForm();
  const { trans } = session;
  return (
    <Row
      label={trans.__('Id')}
      help={trans.__(
        'The name that expressions use for the node. Changing it changes them too.'
      )}
      path={['id']}
    >
      <TextInput
        value={id}
        isLazy
        onChange={wish => {
          if (wish.trim() && wish !== id) {
            session.select([renameNode(session.doc, id, wish)]);
          }
        }}
      />
    </Row>
  );
}

/** The group that a node is in: what dragging it does, by keyboard. */
function GroupField({ id }: { id: string }): JSX.Element | null {
  const { session } = useForm();
  const { trans, document } = session;
  const parents = parentsOf(document);
  const groups = Object.keys(document.nodes).filter(
    other =>
      isGroup(document.nodes[other]) &&
      other !== id &&
      !isInside(parents, other, id)
  );
  return groups.length === 0 ? null : (
    <Row
      label={trans.__('Group')}
      help={trans.__('The group that it is in.')}
      path={['group']}
      isSet={parents.has(id)}
    >
      <Select
        value={parents.get(id) ?? ''}
        options={[
          { value: '', label: trans.__('none') },
          ...groups.map(group => ({
            value: group,
            label: nameOf(document, group)
          }))
        ]}
        onChange={group => putInto(session, [id], group || null)}
      />
    </Row>
  );
}

function Members({ ids }: { ids: readonly string[] }): JSX.Element {
  const { session } = useForm();
  return (
    <Row label={session.trans.__('Members')} path={['members']} isGroup>
      <ul className="jp-Convect-members">
        {ids.map(id => (
          <li key={id}>
            <button
              className="jp-Convect-link"
              onClick={() => session.showProperties(id)}
            >
              {nameOf(session.document, id)}
            </button>
          </li>
        ))}
      </ul>
    </Row>
  );
}

export function CommentProperties({ id }: { id: string }): JSX.Element {
  const { session } = useForm();
  const { trans } = session;
  return (
    <>
      <h2 className="jp-Convect-formTitle">{trans.__('Note')}</h2>
      <Row label={trans.__('Text, in markdown')} path={['comments', id]}>
        <TextArea
          rows={12}
          value={session.document.comments?.[id]?.text ?? ''}
          onChange={text =>
            session.doc.edit(
              draft => draft.set(['comments', id, 'text'], text),
              `comment.${id}`
            )
          }
        />
      </Row>
    </>
  );
}
