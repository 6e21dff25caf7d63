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

test('each account sees as much of a real cluster as its rights allow', async ({
  page
}) => {
  test.skip(
    !process.env.CONVECT_UI_CLUSTERS,
    'Needs a cluster: `make test-cluster` starts one and runs this.'
  );
  await execute(page, 'convect:show-cluster', {});
  const of = (name: string) =>
    frontPage(page).locator(`[data-runtime="${name}"]`);
  const gpus = '[data-node] [data-resource="nvidia.com/gpu"]';

  // All of it: what is free of each node, who holds the rest, and what could start.
  const viewer = of('viewer');
  await expect(viewer.locator(gpus)).toContainText(/^GPU\d of 4 free$/);
  await expect(viewer.locator('details')).toHaveCount(0);
  await expect(
    viewer.getByRole('region', { name: 'GPUs by type' })
  ).toContainText('NVIDIA-A100-SXM4-40GB');
  await expect(viewer.locator('.jp-Convect-holders')).toContainText('holder');
  const tiny = viewer.locator('.jp-Convect-offers li', { hasText: 'Tiny' });
  await expect(tiny).toHaveAttribute('data-now', 'true');
  const quota = viewer.getByRole('region', { name: /^Quota of namespace/ });
  await expect(quota.locator('[data-resource="requests.nvidia.com/gpu"]')).toContainText(
    '1 of 2 free'
  );

  // The namespace: quotas and its own pods; nodes and others are hidden, each with its rule.
  const member = of('member');
  await expect(member.locator(gpus)).toHaveCount(0);
  await expect(member.locator('.jp-Convect-holders')).toContainText('holder');
  await expect(member.locator('[data-resource="requests.nvidia.com/gpu"]')).toContainText(
    '1 of 2 free'
  );
  const hidden = member.locator('details');
  await expect(hidden).toHaveCount(2);
  await hidden.first().getByText('You are not allowed to list the cluster').click();
  await expect(hidden.first()).toContainText('This rule of a ClusterRole would show it:');
  await expect(hidden.first().locator('pre')).toHaveText(/resources: \[nodes\]/);
  await expect(
    member.locator('.jp-Convect-offers li', { hasText: 'Tiny' })
  ).toHaveAttribute('data-now', 'null');

  // Nothing: a sentence for each subject, and the rule that would open it.
  const stranger = of('stranger');
  await expect(stranger).toContainText('Nobody holds anything.');
  await expect(stranger.locator('details')).toHaveCount(
    process.env.CONVECT_UI_QUEUES ? 5 : 4
  );
  for (const rule of await stranger.locator('details pre').allTextContents()) {
    expect(rule).toMatch(/^- apiGroups: \[".*"\]\n {2}resources: /);
  }
});
