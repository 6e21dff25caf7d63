import type { NodeProps } from '@xyflow/react';
import { NodeResizer } from '@xyflow/react';
import * as React from 'react';

import { useDraft } from '../../ui/inputs';
import { useCanvas } from './context';
import type { NoteFlowNode } from './flow';

const LEAST = { width: 100, height: 50 };

/** A note in markdown. A double click or Enter turns it into a text field. */
export const NoteCard = React.memo(function NoteCard({
  id,
  data,
  selected
}: NodeProps<NoteFlowNode>): JSX.Element {
  const { editedNote, isReadOnly, resizeNote } = useCanvas();
  return (
    <div className="jp-Convect-note">
      <NodeResizer
        isVisible={selected && !isReadOnly}
        minWidth={LEAST.width}
        minHeight={LEAST.height}
        onResizeEnd={(_, { x, y, width, height }) =>
          resizeNote(id, [x, y, width, height])
        }
      />
      {editedNote === id ? (
        <NoteField id={id} text={data.text} />
      ) : (
        <Markdown text={data.text} />
      )}
    </div>
  );
});

function NoteField(props: { id: string; text: string }): JSX.Element {
  const { editNote, setNote, trans } = useCanvas();
  // What is typed is in the document at once; the field shows it before that comes back.
  const [draft, setDraft] = useDraft(props.text);
  const field = React.useRef<HTMLTextAreaElement>(null);
  React.useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  return (
    <textarea
      ref={field}
      className="jp-Convect-noteField nodrag nowheel nopan"
      aria-label={trans.__('Text of the note, in markdown')}
      value={draft ?? props.text}
      onChange={event => {
        setDraft(event.target.value);
        setNote(props.id, event.target.value);
      }}
      onBlur={() => editNote(null)}
      onKeyDown={event => {
        if (event.key === 'Escape') {
          // The editor would deselect the note.
          event.stopPropagation();
          event.currentTarget
            .closest<HTMLElement>('.react-flow__node')
            ?.focus();
        }
      }}
    />
  );
}

function Markdown({ text }: { text: string }): JSX.Element {
  const { renderMarkdown } = useCanvas();
  const host = React.useRef<HTMLDivElement>(null);
  // What is drawn has to be taken away while its host is still on the page.
  React.useLayoutEffect(() => {
    const drawn = renderMarkdown(text, host.current!);
    return () => drawn.dispose();
  }, [text, renderMarkdown]);
  return <div ref={host} className="jp-Convect-noteText" />;
}
