import * as React from 'react';
import { createRoot } from 'react-dom/client';
import { act, Simulate } from 'react-dom/test-utils';

import { ExpressionInput } from '../form/ExpressionInput';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

Element.prototype.scrollIntoView = () => undefined;

function Held(props: { start: string }): JSX.Element {
  const [value, setValue] = React.useState(props.start);
  const names = ['nodes.prepare.outputs.auc'];
  return <ExpressionInput value={value} names={names} onChange={setValue} />;
}

it('has the caret behind an accepted completion before the next key', () => {
  const place = document.body.appendChild(document.createElement('div'));
  const root = createRoot(place);
  act(() => root.render(<Held start="au >= 0.5" />));
  const input = place.querySelector('input')!;
  input.setSelectionRange(2, 2);
  act(() => Simulate.focus(input));
  act(() => Simulate.keyDown(input, { key: 'ArrowDown' }));
  act(() => Simulate.keyDown(input, { key: 'Enter' }));
  expect(input.value).toBe('nodes.prepare.outputs.auc >= 0.5');
  expect(input.selectionStart).toBe('nodes.prepare.outputs.auc'.length);
  act(() => root.unmount());
});
