import {
  execute,
  expect,
  forgetRuns,
  frontPage,
  notebook,
  openFile,
  pressRun,
  runAsPipeline,
  showRuns,
  test,
  upload
} from './helpers';

test('a notebook runs with nothing configured, and is not changed', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/hello.ipynb`;
  await upload(page, path, notebook('print("from a kernel far away")', '6 * 7'));
  const source = () =>
    page.evaluate(async path => {
      const { contents } = window.jupyterapp.serviceManager;
      return (await contents.get(path)).content;
    }, path);
  const before = await source();

  await forgetRuns(page);
  const panel = await showRuns(page);
  await expect(panel.getByText('No runs yet')).toBeVisible();
  const dialog = await runAsPipeline(page, path);
  const save = dialog.getByLabel('Save the unsaved changes first');
  if (await save.isVisible()) {
    await save.uncheck();
  }
  await pressRun(dialog);

  const row = panel.getByRole('option', { name: 'hello' });
  await expect(row.getByRole('img', { name: 'Succeeded' })).toBeVisible();
  await row.click();
  const run = frontPage(page);
  await expect(run.getByText('Succeeded')).toBeVisible();
  await expect(run.getByTitle('6 * 7')).toBeVisible();
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('from a kernel far away')).toBeVisible();

  await run.getByRole('button', { name: 'Executed notebook' }).click();
  const executed = page.locator('.jp-NotebookPanel:visible');
  await expect(executed.locator('.jp-OutputArea').getByText('from a kernel far away')).toBeVisible();
  await expect(executed.locator('.jp-OutputArea').getByText('42')).toBeVisible();
  await expect(executed.getByText('read-only')).toBeVisible();
  expect(await source()).toEqual(before);

  await executed.getByText('Compare with the source').click();
  await expect(frontPage(page).getByText('42')).toBeVisible();
});

test('parameters are typed, remembered and cloned', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/typed.ipynb`;
  await upload(
    page,
    path,
    notebook(
      { source: 'rows: int = 3  # how many\nname = "a"', tags: ['parameters'] },
      'print("rows", rows + 1, name)'
    )
  );
  let dialog = await runAsPipeline(page, path);
  const rows = dialog.getByLabel('rows', { exact: true });
  await expect(rows).toHaveValue('3');
  await expect(dialog.getByText('how many')).toBeVisible();
  await rows.fill('many');
  await expect(dialog.getByText('Give a whole number.')).toBeVisible();
  await expect(
    dialog.getByRole('button', { name: 'Run', exact: true })
  ).toBeDisabled();
  await rows.fill('41');
  await pressRun(dialog);

  const panel = await showRuns(page);
  const row = panel.getByRole('option', { name: 'typed' }).first();
  await expect(row.getByText('rows=41')).toBeVisible();
  await row.click();
  const run = frontPage(page);
  await expect(run.getByText('Succeeded')).toBeVisible();
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('rows 42 a')).toBeVisible();

  dialog = await runAsPipeline(page, path);
  await expect(dialog.getByLabel('rows', { exact: true })).toHaveValue('41');
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await row.click();
  await run.getByRole('button', { name: 'Change and run again' }).click();
  await expect(dialog.getByLabel('rows', { exact: true })).toHaveValue('41');
  await dialog.getByRole('button', { name: 'Show as pipeline' }).click();
  await expect
    .poll(() => page.contents.fileExists(`${tmpPath}/typed.pipeline`))
    .toBe(true);
});

test('a sweep of six shows its table and opens the best', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/sweep.ipynb`;
  await upload(
    page,
    path,
    notebook(
      { source: 'a = 1\nb = 0.5', tags: ['parameters'] },
      'import jupyterlab_convect as convect\nconvect.metric("score", a * b)',
      'print("score is", a * b)'
    )
  );
  const dialog = await runAsPipeline(page, path);
  await dialog.getByLabel('a', { exact: true }).fill('1..3');
  await dialog.getByLabel('b', { exact: true }).fill('0.5, 2');
  await expect(dialog.getByText('6 runs on This machine')).toBeVisible();
  await dialog.getByLabel('Best').first().selectOption('max');
  await dialog.getByLabel('Metric').fill('score');
  await pressRun(dialog);

  const panel = await showRuns(page);
  await expect(panel.getByText('6 of 6 runs')).toBeVisible();
  await panel.getByRole('option', { name: 'sweep' }).first().click();
  const sweep = frontPage(page);
  await expect(sweep.getByText('6 of 6 runs have ended')).toBeVisible();
  await expect(sweep.locator('canvas').first()).toBeVisible();
  const rows = sweep.locator('.jp-ConvectRuns-grid-row');
  await expect(rows).toHaveCount(6);
  const best = rows.filter({ hasText: 'Best' });
  await expect(best).toContainText('6');

  await sweep.getByRole('columnheader', { name: 'score' }).click();
  await expect(rows.first()).toContainText('0.5');
  await sweep.getByLabel('Filter the runs').fill('a>2');
  await expect(rows).toHaveCount(2);

  await sweep.getByRole('button', { name: 'Open the best' }).click();
  await expect(
    page.locator('.jp-NotebookPanel:visible').getByText('score is 6')
  ).toBeVisible();
});

test('a failing notebook says why and opens at its cell', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/failing.ipynb`;
  const filler = Array.from({ length: 12 }, (_, i) => `"filler ${i}"`);
  await upload(
    page,
    path,
    notebook(
      ...filler,
      'from IPython.display import HTML\nHTML("<script>window.harmed = 1</script><b>shown</b>")',
      'raise ValueError("no such customer")',
      '"never"'
    )
  );
  await pressRun(await runAsPipeline(page, path));
  const panel = await showRuns(page);
  const row = panel.getByRole('option', { name: 'failing' });
  await expect(row.getByRole('img', { name: 'Failed' })).toBeVisible();
  await row.click();
  const run = frontPage(page);
  await expect(run.getByRole('alert')).toContainText('no such customer');
  await run.getByRole('button', { name: 'Executed notebook' }).click();
  const executed = page.locator('.jp-NotebookPanel:visible');
  await expect(
    executed.locator('.jp-Cell.jp-mod-active').getByText('no such customer').first()
  ).toBeInViewport();
  expect(await page.evaluate(() => 'harmed' in window)).toBe(false);
});

test('a run is watched, stopped, run again and deleted', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/slow.ipynb`;
  await upload(
    page,
    path,
    notebook(
      'import sys, time\nfor i in range(600):\n    sys.stdout.write(f"\\r\\x1b[32mbar {i}\\x1b[0m")\n    sys.stdout.flush()\n    time.sleep(0.1)'
    )
  );
  await pressRun(await runAsPipeline(page, path));
  const panel = await showRuns(page);
  const row = panel.getByRole('option', { name: 'slow' }).first();
  await expect(row.getByRole('img', { name: 'Running' })).toBeVisible();
  await row.click();
  const run = frontPage(page);
  await run.getByRole('tab', { name: 'Log' }).click();
  const bar = run.locator('.ansi-green-fg');
  await expect(bar).toHaveText(/bar [1-9]\d/);
  await expect(bar).toHaveCount(1);

  await page.sidebar.openTab('jp-running-sessions');
  await expect(
    page.getByRole('region', { name: 'Runs Section' }).getByText('slow')
  ).toBeVisible();

  await run.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(run.getByText('Cancelled').first()).toBeVisible();
  await run.getByRole('button', { name: 'Run again', exact: true }).click();
  await showRuns(page);
  await expect(
    panel.getByRole('option').getByRole('img', { name: 'Running' })
  ).toHaveCount(1);
  const again = frontPage(page);
  await again.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(again.getByText('Cancelled').first()).toBeVisible();
  await again.getByRole('button', { name: 'Delete', exact: true }).click();
  await page
    .locator('.jp-Dialog')
    .getByRole('button', { name: 'Delete', exact: true })
    .click();
  await expect(again.getByText('This run has been deleted.')).toBeVisible();
});

test('Chinese is offered and spoken', async ({ page, tmpPath }) => {
  const path = `${tmpPath}/你好.ipynb`;
  await upload(page, path, notebook('print("你好")'));
  await page.menu.clickMenuItem(
    'Settings>Language>Chinese (Simplified, China) - 中文 (简体, 中国)'
  );
  await page.getByRole('button', { name: 'Change and reload' }).click();
  await page.locator('[lang^="zh"]').first().waitFor({ state: 'attached' });
  await page.goto();
  await openFile(page, path);
  await page
    .locator('.jp-NotebookPanel:visible')
    .getByText('作为流水线运行')
    .click();
  const dialog = page.locator('.jp-ConvectRuns-dialog');
  await dialog.getByRole('button', { name: '运行', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.sidebar.openTab('jp-convect-runs');
  const row = page.getByRole('option', { name: '你好' });
  await expect(row.getByRole('img', { name: '成功' })).toBeVisible();
});


test('several files run together, and a log of 50 MB stays readable', async ({
  page,
  tmpPath
}) => {
  await upload(
    page,
    `${tmpPath}/big.py`,
    'for i in range(50000):\n    print(f"line {i:05d} " + "." * 988)\n'
  );
  await upload(page, `${tmpPath}/small.ipynb`, notebook('print("small")'));
  const dialog = page.locator('.jp-ConvectRuns-dialog');
  void execute(page, 'convect:run-as-pipeline', {
    paths: [`${tmpPath}/big.py`, `${tmpPath}/small.ipynb`]
  });
  await dialog.getByText('One run on This machine').waitFor();
  await pressRun(dialog);

  const panel = await showRuns(page);
  await panel.getByRole('option', { name: '2 files' }).click();
  const run = frontPage(page);
  await expect(run.getByText('Succeeded').first()).toBeVisible();
  await run.getByRole('option', { name: /^Succeeded big/ }).click();
  await run.getByRole('tab', { name: 'Log' }).click();
  await run.getByLabel('Search the log').fill('line 49999');
  const hit = run.locator('.jp-ConvectRuns-log-line.jp-mod-current');
  await expect(hit).toContainText('line 49999');
  await expect(hit).toBeInViewport();
});
