import { nullTranslator } from '@jupyterlab/translation';
import { act } from 'react-dom/test-utils';

import { until } from '../../__tests__/until';
import { CatalogForm } from '../form';
import { askCatalog } from '../formdialog';

describe('the dialog of a catalog', () => {
  it('stays unfolded under the cursor when a field of it is cleared', async () => {
    const form = new CatalogForm(
      'url',
      nullTranslator.load('jupyterlab_convect'),
      () => Promise.reject(new Error('not sent'))
    );
    form.set({ replacements: 'https://a.example = https://b.example' });
    const answer = askCatalog(form);
    const part = () => document.querySelector('details');
    await until(() => part() !== null);
    expect(part()?.open).toBe(true);
    await act(async () => form.set({ replacements: '' }));
    expect(part()?.open).toBe(true);
    document
      .querySelector<HTMLElement>('.jp-Dialog-footer .jp-mod-reject')
      ?.click();
    expect(await answer).toBeNull();
    expect(form.isDisposed).toBe(true);
  });
});
