import { execute, expect, frontPage, notebook, openFile, test, upload } from './helpers';

const DASK = '/jupyterlab-convect/api/v1/dask';

test.afterEach(async ({ page }) => {
  await page.request.delete(`${DASK}/clusters`);
});

test('a Dask cluster is made by the form, scaled, looked into, connected with and stopped', async ({
  page,
  tmpPath
}) => {
  test.slow();
  const asked = await page.request.post(`${DASK}/options`, { data: {} });
  test.skip(!asked.ok(), 'Dask is not installed.');
  const path = `${tmpPath}/work.ipynb`;
  await upload(page, path, notebook('first = 1', 'last = 2'));

  await execute(page, 'convect:show-dask', {});
  const list = frontPage(page);
  await expect(list).toContainText('No Dask clusters');
  await list.getByRole('button', { name: 'New Dask Cluster…' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Cores of a worker').fill('99999');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form).toContainText('or less.');
  await form.getByLabel('Cores of a worker').fill('1');
  await form.getByLabel('Workers', { exact: true }).fill('1');
  await form.getByRole('button', { name: 'Create' }).click();
  await expect(form).toBeHidden();

  const cluster = list.locator('[data-cluster]');
  await expect(cluster).toContainText('1 worker', { timeout: 300_000 });
  await expect(cluster.locator('.jp-Convect-daskWorkers tbody tr')).toHaveCount(1);
  await expect(cluster.locator('figure canvas')).toHaveCount(4);

  await cluster.getByRole('button', { name: 'Scale…' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('many');
  await page.keyboard.press('Enter');
  await expect(cluster).toContainText('Enter a whole number');
  await cluster.getByRole('button', { name: 'Scale…' }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('2');
  await page.keyboard.press('Enter');
  await expect(cluster).toContainText('2 workers', { timeout: 300_000 });

  // Beside the notebook, so that the cluster can be dragged into it.
  await openFile(page, path);
  await page.evaluate(() => {
    const { shell } = window.jupyterapp;
    const widgets = [...shell.widgets('main')];
    const clusters = widgets.find(each => each.node.querySelector('[data-cluster]'));
    const book = shell.currentWidget;
    if (clusters && book) {
      shell.add(clusters, 'main', { mode: 'split-left', ref: book.id });
    }
  });
  const book = page.locator('.jp-NotebookPanel');
  const cells = book.locator('.jp-CodeCell');
  await expect(cells).toHaveCount(2);
  const dragged = page.locator('[data-cluster] h3');
  const from = (await dragged.boundingBox())!;
  const to = (await cells.nth(1).boundingBox())!;
  await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
  await page.mouse.down();
  await page.mouse.move(to.x + to.width / 2, to.y + to.height / 2, { steps: 10 });
  await page.mouse.up();
  await expect(cells).toHaveCount(3);
  await expect(cells.nth(1)).toContainText('gateway.connect(name)');
  await expect(cells.nth(2)).toContainText('last = 2');

  const shown = page.locator('[data-cluster]');
  await shown.getByRole('button', { name: 'Insert Client Code' }).click();
  await expect(cells).toHaveCount(4);
  const inserted = cells.filter({ hasText: 'gateway.connect(name)' }).last();
  await inserted.click();
  await page.keyboard.press('Control+Enter');
  await expect(inserted.locator('.jp-OutputArea-output').last()).toContainText('Client', {
    timeout: 300_000
  });
  await expect(shown).toContainText('1 program connected', { timeout: 300_000 });

  await shown.getByRole('button', { name: 'Dashboard…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Open' }).click();
  const pane = page.frameLocator('iframe[title="Task Stream"]');
  await expect(pane.locator('body')).not.toBeEmpty({ timeout: 300_000 });

  await execute(page, 'convect:show-dask', {});
  await shown.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(page.locator('[data-cluster]')).toHaveCount(0, { timeout: 300_000 });
});
