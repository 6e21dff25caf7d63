import { Dialog } from '@jupyterlab/apputils';
import { act } from 'react-dom/test-utils';
import * as React from 'react';
import { createRoot } from 'react-dom/client';

import { Field } from '../form';
import { TextInput } from '../inputs';

(
  globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }
).IS_REACT_ACT_ENVIRONMENT = true;

describe('a field', () => {
  const place = document.createElement('div');
  const root = createRoot(place);
  const draw = (error: string | null, isGroup = false) =>
    act(() =>
      root.render(
        <Field label="Name" error={error} isGroup={isGroup}>
          <TextInput value="x" onChange={() => undefined} />
        </Field>
      )
    );

  it('ties its input to its label and to what is wrong', () => {
    draw('Too short.');
    const input = place.querySelector('input')!;
    expect(place.querySelector('label')!.htmlFor).toBe(input.id);
    expect(input.getAttribute('aria-invalid')).toBe('true');
    const note = input.getAttribute('aria-describedby')!;
    expect(place.querySelector(`[id="${note}"]`)!.textContent).toBe(
      'Too short.'
    );
    draw(null);
    expect(input.getAttribute('aria-invalid')).toBe('false');
  });

  it('names the group of several inputs instead', () => {
    draw(null, true);
    const group = place.querySelector('[role="group"]')!;
    const label = group.getAttribute('aria-labelledby')!;
    expect(place.querySelector(`[id="${label}"]`)!.textContent).toBe('Name');
    expect(place.querySelector('input')!.id).toBe('');
  });

  it('lets a dialog of JupyterLab be answered while it is wrong', () => {
    draw('Too short.');
    const dialog = new Dialog();
    dialog.node.querySelector('.jp-Dialog-content')!.append(place);
    dialog.handleEvent(new window.Event('input'));
    const accept = dialog.node.querySelector<HTMLButtonElement>(
      '.jp-Dialog-button.jp-mod-accept'
    );
    expect(accept!.disabled).toBe(false);
    dialog.dispose();
  });
});
