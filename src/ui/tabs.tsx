import * as React from 'react';

/** Names to choose one of, by mouse or by arrow keys. */
export function Tabs<T extends string>(props: {
  label: string;
  tabs: readonly { name: T; label: string }[];
  selected: T;
  onSelect: (name: T) => void;
}): JSX.Element {
  const { label, tabs, selected, onSelect } = props;
  const bar = React.useRef<HTMLDivElement>(null);
  const onKeyDown = (event: React.KeyboardEvent) => {
    const index = tabs.findIndex(tab => tab.name === selected);
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (by === undefined) {
      return;
    }
    event.preventDefault();
    const next = (index + by + tabs.length) % tabs.length;
    onSelect(tabs[next].name);
    bar.current?.querySelectorAll('button')[next]?.focus();
  };
  return (
    <div
      ref={bar}
      className="jp-Convect-tabs"
      role="tablist"
      aria-label={label}
      onKeyDown={onKeyDown}
    >
      {tabs.map(tab => (
        <button
          key={tab.name}
          role="tab"
          aria-selected={tab.name === selected}
          tabIndex={tab.name === selected ? 0 : -1}
          onClick={() => onSelect(tab.name)}
        >
          {tab.label}
        </button>
      ))}
    </div>
  );
}
