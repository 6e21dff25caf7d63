import * as React from 'react';

import { FieldContext, ReadOnly, useDraft } from '../../ui';
import { completionAt } from '../completion';

/** A text field for an expression that offers what can be referred to. */
export function ExpressionInput(props: {
  value: string;
  placeholder?: string;
  /** What it is called where no field does. */
  label?: string;
  names: readonly string[];
  onChange: (text: string) => void;
}): JSX.Element {
  const field = React.useContext(FieldContext);
  const isReadOnly = React.useContext(ReadOnly);
  const [draft, setDraft] = useDraft(props.value);
  const text = draft ?? props.value;
  const input = React.useRef<HTMLInputElement>(null);
  const [caret, setCaret] = React.useState<number | null>(null);
  const [chosen, setChosen] = React.useState(-1);
  const accepted = React.useRef<number | null>(null);
  const listId = React.useId();
  const { from, to, options } = completionAt(text, caret ?? 0, props.names);
  const isOpen = caret !== null && options.length > 0 && !isReadOnly;

  // Before the next key, which may already be on its way, finds the caret elsewhere.
  React.useLayoutEffect(() => {
    if (accepted.current !== null) {
      input.current?.setSelectionRange(accepted.current, accepted.current);
      accepted.current = null;
    }
  });

  const open = () => {
    setCaret(input.current?.selectionStart ?? text.length);
    setChosen(-1);
  };
  const close = () => setCaret(null);
  const write = (next: string) => {
    setDraft(next);
    props.onChange(next);
  };
  const accept = (option: string) => {
    const next = text.slice(0, from) + option + text.slice(to);
    accepted.current = from + option.length;
    write(next);
    close();
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      if (isOpen) {
        const count = options.length;
        setChosen(
          (chosen + step + (chosen < 0 && step < 0 ? 1 : 0) + count) % count
        );
      } else {
        open();
      }
    } else if (event.key === ' ' && event.ctrlKey) {
      open();
    } else if (event.key === 'Enter' && isOpen && chosen >= 0) {
      accept(options[chosen]);
    } else if (event.key === 'Escape' && isOpen) {
      close();
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <span className="jp-Convect-expression">
      <input
        {...(props.label === undefined ? field : { 'aria-label': props.label })}
        ref={input}
        className="jp-mod-styled"
        type="text"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={isOpen}
        aria-controls={listId}
        aria-activedescendant={
          isOpen && chosen >= 0 ? `${listId}-${chosen}` : undefined
        }
        value={text}
        placeholder={props.placeholder}
        readOnly={isReadOnly}
        spellCheck={false}
        autoComplete="off"
        onFocus={open}
        onClick={open}
        onBlur={() => {
          close();
          setDraft(null);
        }}
        onKeyDown={onKeyDown}
        onChange={event => {
          write(event.target.value);
          setCaret(event.target.selectionStart);
          setChosen(-1);
        }}
      />
      <ul id={listId} role="listbox" hidden={!isOpen}>
        {isOpen &&
          options.map((option, index) => (
            <li
              key={option}
              id={`${listId}-${index}`}
              role="option"
              aria-selected={index === chosen}
              ref={element => {
                if (index === chosen) {
                  element?.scrollIntoView({ block: 'nearest' });
                }
              }}
              // The field keeps the keyboard.
              onMouseDown={event => event.preventDefault()}
              onClick={() => accept(option)}
            >
              {option}
            </li>
          ))}
      </ul>
    </span>
  );
}
