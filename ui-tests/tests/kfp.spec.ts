import type { Locator } from '@playwright/test';

import {
  expect,
  frontPage,
  notebook,
  pressRun,
  runAsPipeline,
  test,
  upload
} from './helpers';

interface INotebookCell {
  source: string;
  outputs: unknown[];
}

/** A run takes the better part of a minute there, and longer on a busy machine. */
const PATIENCE = 420000;

test('a notebook runs on Kubeflow Pipelines, and comes home as it was executed', async ({
  page,
  tmpPath
}) => {
  test.skip(
    !process.env.CONVECT_UI_KFP,
    'Needs Kubeflow Pipelines: `make test-kfp` starts one and runs this.'
  );
  const path = `${tmpPath}/模型.ipynb`;
  await upload(
    page,
    path,
    notebook(
      { source: 'n = 1', tags: ['parameters'] },
      'import os\nprint("in a pod:", "KUBERNETES_SERVICE_HOST" in os.environ)',
      { source: 'twice = n * 2', tags: ['outputs'] }
    )
  );
  const source = () =>
    page.evaluate(async path => {
      const { contents } = window.jupyterapp.serviceManager;
      // Whether JupyterLab trusts it may change meanwhile.
      return (await contents.get(path)).content.cells.map(
        ({ source, outputs }: INotebookCell) => ({ source, outputs })
      );
    }, path);
  const before = await source();
  const dialog = await runAsPipeline(page, path);
  await dialog.getByLabel('Where').selectOption('kfp');
  await dialog.getByRole('button', { name: 'Test Connection' }).click();
  await expect(dialog).toContainText('answers');
  await dialog.getByLabel('n', { exact: true }).fill('21');
  await dialog.getByText('One run on Kubeflow Pipelines').waitFor();
  await pressRun(dialog);

  const run = frontPage(page);
  await expect(run).toContainText('Kubeflow Pipelines');
  await run
    .locator('.jp-Convect-titleState[data-state="succeeded"]')
    .waitFor({ timeout: PATIENCE });
  await expect(run).toContainText('42');
  const link = run.getByRole('link', { name: 'Kubeflow Pipelines' });
  await expect(link).toHaveAttribute('href', /#\/runs\/details\//);
  const colour = (what: Locator) =>
    what.evaluate(element => getComputedStyle(element).color);
  expect(await colour(link)).toBe(
    await colour(run.getByRole('button', { name: path }))
  );
  await run.getByRole('button', { name: 'Executed notebook' }).click();
  const executed = page.locator('.jp-NotebookPanel:visible');
  await expect(
    executed.locator('.jp-OutputArea').getByText('in a pod: True')
  ).toBeVisible();
  await expect(executed.getByText('read-only')).toBeVisible();
  expect(await source()).toEqual(before);
});
