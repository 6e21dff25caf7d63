import { execute, expect, frontPage, notebook, openFile, test, upload } from './helpers';

const API = '/jupyterlab-convect/api/v1';

test('the page of the cluster shows what could start, fills the run dialog, and gives back', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/long.ipynb`;
  await upload(page, path, notebook('import time\ntime.sleep(6000)'));
  const started = await page.request.post(`${API}/runs`, {
    data: { path, settings: { resources: { cpu: '100m', memory: '64Mi' } } }
  });
  const { id } = (await started.json()) as { id: string };
  await openFile(page, path);

  await execute(page, 'convect:show-cluster', {});
  const front = frontPage(page);
  const here = front.getByRole('region', { name: 'This machine' }).first();
  const holders = here.getByRole('region', { name: 'Who holds what' });
  const held = holders.locator('li[data-kind="run"]', { hasText: 'long' });
  await expect(held).toContainText('CPU 0.1');
  const kernel = holders.locator('li[data-kind="kernel"]', {
    hasText: 'long.ipynb'
  });
  await expect(kernel).toContainText('Memory');

  const offers = here.getByRole('region', { name: 'What could I start now?' });
  const huge = offers.locator('li', { hasText: 'Huge' });
  await expect(huge).toContainText('nothing');
  await expect(huge).toContainText('This step needs 4096 CPUs');
  await expect(huge.getByRole('button')).toHaveCount(0);
  const tiny = offers.locator('li', { hasText: 'Tiny' });
  await expect(tiny).toContainText('For tests.');
  await tiny.getByRole('button', { name: 'Run…' }).click();
  const dialog = page.getByRole('dialog');
  await expect(dialog).toContainText('Run long.ipynb');
  await dialog.getByRole('button', { name: /^Resources/ }).waitFor();
  await expect(dialog.getByLabel('Profile')).toBeVisible();
  await dialog.getByLabel('Profile').selectOption('Tiny');
  await expect(dialog).toContainText('For tests.');
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await held.getByRole('button', { name: 'Give It Back' }).focus();
  await page.keyboard.press('Enter');
  await expect(held).toHaveCount(0);
  await expect
    .poll(async () => {
      const answer = await page.request.get(`${API}/runs/${id}`);
      return ((await answer.json()) as { state: string }).state;
    })
    .toBe('cancelled');
  await kernel.getByRole('button', { name: 'Give It Back' }).click();
  await expect(kernel).toHaveCount(0);

  // A cluster that does not answer says so, and holds up nothing else.
  await expect(
    front.getByRole('region', { name: 'Kubernetes' })
  ).toContainText('No Kubernetes cluster is configured');
});
