import {
  execute,
  expect,
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
  // What is known of its language is written down by whoever opens it.
  const source = () =>
    page.evaluate(async path => {
      const { contents } = window.jupyterapp.serviceManager;
      return (await contents.get(path)).content.cells;
    }, path);
  const before = await source();

  const panel = await showRuns(page);
  await expect(panel.getByText('No runs yet')).toBeVisible();
  const dialog = await runAsPipeline(page, path);
  const save = dialog.getByLabel('Save the unsaved changes first');
  if (await save.isVisible()) {
    await save.uncheck();
  }
  await pressRun(dialog);

  // Pressing Run shows the run, so nothing has to be said of it.
  const row = panel.getByRole('treeitem', { name: 'hello' });
  await expect(row.getByRole('img', { name: 'Succeeded' })).toBeVisible();
  const run = frontPage(page);
  await expect(run.getByText('Succeeded')).toBeVisible();
  await expect(page.getByRole('alert').filter({ hasText: 'hello' })).toHaveCount(0);
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
  await expect(frontPage(page).getByText('The sources are the same.')).toBeVisible();
  await frontPage(page).getByLabel('Outputs, too').check();
  await expect(frontPage(page).getByText('42')).toBeVisible();

  await row.click();
  const zip = page.waitForEvent('download');
  await run.getByRole('button', { name: 'Download everything' }).click();
  expect((await zip).suggestedFilename()).toMatch(/\.zip$/);
  await run.getByRole('button', { name: 'Compare with other runs' }).click();
  await expect(frontPage(page).getByText('Digest of the source')).toBeVisible();
});

test('a notebook without kernel runs with the default one, unsaved changes with it', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/bare.ipynb`;
  const content = JSON.parse(notebook('print("bare")'));
  await upload(page, path, JSON.stringify({ ...content, metadata: {} }));
  void execute(page, 'convect:run-as-pipeline', { path });
  const dialog = page.locator('.jp-Convect-runDialog');
  await expect(dialog.getByLabel('Kernel')).toHaveValue('python3');
  await expect(dialog.getByText('The notebook names none.')).toBeVisible();
  await dialog.getByLabel('Kernel').fill('klingon');
  await expect(dialog.getByText('The kernel klingon is not')).toBeVisible();
  const button = dialog.getByRole('button', { name: 'Run', exact: true });
  await expect(button).toBeDisabled();
  await dialog.getByLabel('Kernel').fill('python3');
  const env = dialog.getByRole('group', { name: 'Environment variables' });
  await env.getByRole('button', { name: 'Add' }).click();
  await env.getByLabel('Environment variables: name').fill('A');
  await page.keyboard.press('Tab');
  await env.getByLabel('Environment variables: value of A').fill('1');
  await expect(button).toBeEnabled();
  // Enter unfolds what is folded, and runs in a field.
  await dialog.getByRole('button', { name: 'Behaviour' }).press('Enter');
  await dialog.getByLabel('Timeout').press('Enter');
  await dialog.waitFor({ state: 'detached' });
  const panel = await showRuns(page);
  const row = panel.getByRole('treeitem', { name: 'bare' });
  await expect(row.getByRole('img', { name: 'Succeeded' })).toBeVisible();

  const later = `${tmpPath}/later.ipynb`;
  await upload(page, later, notebook('print("before")'));
  await openFile(page, later);
  const editor = page.locator('.jp-NotebookPanel:visible .cm-content').first();
  await editor.click();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('print("after all")');
  const again = await runAsPipeline(page, later);
  await expect(
    again.getByLabel('Save the unsaved changes first')
  ).toBeChecked();
  await pressRun(again);
  await panel.getByRole('treeitem', { name: 'later' }).click();
  const run = frontPage(page);
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('after all')).toBeVisible();
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
      'print("rows", rows + 1, name)',
      'import jupyterlab_convect as convect\nfor i in range(9):\n    convect.metric("loss", 1 / (i + 1))',
      'convect.output("half", rows / 2)\nopen("kept.txt", "w").write("kept")'
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
  await dialog.getByRole('button', { name: 'Data' }).click();
  const kept = dialog.getByRole('group', { name: 'Files it makes' });
  await kept.getByRole('button', { name: 'Add' }).click();
  await kept.getByLabel('Files it makes 1').fill('kept.txt');
  await pressRun(dialog);

  const panel = await showRuns(page);
  const row = panel.getByRole('treeitem', { name: 'typed' }).first();
  await expect(row.getByText('rows=41')).toBeVisible();
  await row.click();
  const run = frontPage(page);
  await expect(run.getByText('Succeeded')).toBeVisible();
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('rows 42 a')).toBeVisible();
  await run.getByRole('tab', { name: 'Values' }).click();
  await expect(run.getByRole('row', { name: 'half 20.5' })).toBeVisible();
  await run.getByRole('tab', { name: 'Metrics' }).click();
  await expect(run.locator('canvas')).toBeVisible();
  await run.getByRole('tab', { name: 'Files' }).click();
  const file = page.waitForEvent('download');
  await run.getByRole('link', { name: 'kept.txt' }).click();
  expect((await file).suggestedFilename()).toBe('kept.txt');

  dialog = await runAsPipeline(page, path);
  await expect(dialog.getByLabel('rows', { exact: true })).toHaveValue('41');
  await dialog.getByRole('button', { name: 'Cancel' }).click();

  await row.click();
  await run.getByRole('button', { name: 'Change and run again' }).click();
  await expect(dialog.getByLabel('rows', { exact: true })).toHaveValue('41');
  await expect(dialog.getByLabel('Files it makes 1')).toHaveValue('kept.txt');
  await dialog.getByRole('button', { name: 'Save as pipeline' }).click();
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
      'import jupyterlab_convect as convect\nassert a < 9\nconvect.metric("score", a * b)',
      'print("score is", a * b)'
    )
  );
  const dialog = await runAsPipeline(page, path);
  await dialog.getByLabel('a', { exact: true }).fill('1..3');
  await dialog.getByLabel('b', { exact: true }).fill('0.5, 2');
  await expect(dialog.getByText('6 runs on this machine')).toBeVisible();
  await dialog.getByLabel('Best').first().selectOption('max');
  await dialog.getByLabel('Metric').fill('score');
  await pressRun(dialog);

  const panel = await showRuns(page);
  await expect(panel.getByText('6 of 6 runs')).toBeVisible();
  await panel.getByRole('treeitem', { name: 'sweep' }).first().click();
  const sweep = frontPage(page);
  await expect(sweep.getByText('6 of 6 runs have ended')).toBeVisible();
  await expect(sweep.locator('canvas').first()).toBeVisible();
  const rows = sweep.locator('.jp-Convect-gridRow');
  await expect(rows).toHaveCount(6);
  const best = rows.filter({ hasText: 'Best' });
  await expect(best).toContainText('6');
  // What is marked leaves room for the rest above the table.
  await rows.first().click({ modifiers: ['Control'] });
  await expect(sweep.getByText('Compare 1 marked')).toBeVisible();
  expect(
    await sweep
      .locator('.jp-Convect-tablebar')
      .evaluate(bar => bar.scrollWidth - bar.clientWidth)
  ).toBe(0);
  await sweep.getByRole('button', { name: 'Clear', exact: true }).click();

  await sweep.getByRole('button', { name: 'Rename' }).click();
  const naming = page.locator('.jp-Dialog', { hasText: 'Rename the sweep' });
  await naming.getByRole('textbox').fill('products');
  await page.keyboard.press('Enter');
  await expect(sweep.getByRole('heading', { name: 'products' })).toBeVisible();
  await expect(
    panel.getByRole('treeitem', { name: 'products' })
  ).toBeVisible();

  const score = sweep.getByRole('columnheader', { name: 'score' });
  await score.click();
  await expect(rows.first()).toContainText('Best');
  await score.click();
  await expect(rows.first()).toContainText('0.5');
  await sweep.getByLabel('Filter the runs').fill('a>2');
  await expect(rows).toHaveCount(2);

  await sweep.getByLabel('Filter the runs').fill('');
  await sweep.getByText('Columns').click();
  await sweep.getByRole('checkbox', { name: 'score' }).uncheck();
  await expect(
    sweep.getByRole('columnheader', { name: 'score' })
  ).toBeHidden();
  await sweep.getByText('Columns').click();

  await sweep.getByRole('button', { name: 'Add points' }).click();
  await sweep.getByRole('textbox', { name: 'a', exact: true }).fill('0, 9');
  await sweep.getByRole('textbox', { name: 'b', exact: true }).fill('7');
  await sweep.getByRole('button', { name: 'Add 2 runs' }).click();
  await expect(sweep.getByText('8 of 8 runs have ended')).toBeVisible();
  const failed = rows.filter({
    has: page.getByRole('img', { name: 'Failed' })
  });
  const first = await failed.getAttribute('data-run');
  await sweep.getByRole('button', { name: 'Run the failed again' }).click();
  await expect(failed).not.toHaveAttribute('data-run', first ?? '');
  await expect(sweep.getByText('1 did not succeed')).toBeVisible();

  await sweep.getByRole('button', { name: 'Open the best' }).click();
  await expect(
    page.locator('.jp-NotebookPanel:visible').getByText('score is 6')
  ).toBeVisible();
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
  await upload(page, `${tmpPath}/small.ipynb`, notebook({ source: 'words = "one"', tags: ['parameters'] }, 'print(words)'));
  const dialog = page.locator('.jp-Convect-runDialog');
  await page.sidebar.openTab('filebrowser');
  await page.filebrowser.openDirectory(tmpPath);
  const file = (name: string) =>
    page.locator('.jp-DirListing-item').filter({ hasText: name });
  await file('big.py').click();
  await file('small.ipynb').click({ modifiers: ['ControlOrMeta'] });
  await file('small.ipynb').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Run as Pipeline…' }).click();
  await dialog.getByText('One run on this machine').waitFor();
  await expect(dialog.getByRole('listitem')).toHaveText(['big.py', 'small.ipynb']);
  await dialog.getByLabel('words', { exact: true }).fill('two');
  await pressRun(dialog);

  const panel = await showRuns(page);
  await panel.getByRole('treeitem', { name: 'big, small' }).click();
  const run = frontPage(page);
  await expect(run.getByText('Succeeded').first()).toBeVisible();
  await run.getByRole('option', { name: /^Succeeded big/ }).click();
  await run.getByRole('tab', { name: 'Log' }).click();
  await run.getByLabel('Search the log').fill('line 49999');
  const hit = run.locator('.jp-Convect-logLine.jp-mod-current');
  await expect(hit).toContainText('line 49999');
  await expect(hit).toBeInViewport();
});

test('the form loses neither the keyboard, nor lines, nor what a run was asked', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/kept.ipynb`;
  await upload(
    page,
    path,
    notebook(
      { source: 'rate = 0.5\ntext = "one\\ntwo"', tags: ['parameters'] },
      'print(text)'
    )
  );
  const dialog = page.locator('.jp-Convect-runDialog');
  const button = dialog.getByRole('button', { name: 'Run', exact: true });
  await runAsPipeline(page, path);
  const text = dialog.getByLabel('text', { exact: true });
  await expect(text).toHaveValue('one\ntwo');
  await text.focus();
  await page.keyboard.press('ControlOrMeta+End');
  await page.keyboard.type('\nthree');
  await expect(text).toHaveValue('one\ntwo\nthree');
  const rate = dialog.getByLabel('rate', { exact: true });
  await rate.focus();
  await page.keyboard.press('ControlOrMeta+a');
  await page.keyboard.type('0:20000:1');
  await expect(rate).toBeFocused();
  await expect(dialog.getByText('20001 runs on this machine')).toBeVisible();
  // What is refused can be mended, and left with Escape.
  await button.click();
  await expect(dialog.getByRole('alert')).toContainText('at most 10000 points');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });

  const asked = await page.request.post('/jupyterlab-convect/api/v1/runs', {
    data: {
      path,
      labels: { team: 'churn' },
      settings: {
        metrics: { loss: 'loss=(.*)' },
        resources: { memory: { request: '1Mi', limit: '2Gi' } }
      }
    }
  });
  const { id } = await asked.json();
  const clones: unknown[] = [];
  page.on('request', request => {
    if (request.method() === 'POST' && /\/v1\/runs(\?|$)/.test(request.url())) {
      clones.push(request.postDataJSON());
    }
  });
  void execute(page, 'convect:clone-run', { run: id });
  await dialog.getByText('One run on this machine').waitFor();
  await expect(dialog.getByLabel('limit').last()).toHaveValue('2Gi');
  await pressRun(dialog);
  await expect.poll(() => clones).toEqual([
    {
      path,
      runtime: 'local',
      labels: { team: 'churn' },
      settings: {
        metrics: { loss: 'loss=(.*)' },
        resources: { memory: { request: '1Mi', limit: '2Gi' } }
      }
    }
  ]);
});
