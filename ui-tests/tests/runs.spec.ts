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

interface ITerminalTab {
  content?: {
    _term?: {
      buffer: {
        active: {
          length: number;
          getLine(index: number): { translateToString(): string };
        };
      };
    };
  };
}

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

  await page
    .getByRole('alert')
    .filter({ hasText: 'hello runs now.' })
    .getByRole('button', { name: 'Open' })
    .click();
  const row = panel.getByRole('option', { name: 'hello' });
  await expect(row.getByRole('img', { name: 'Succeeded' })).toBeVisible();
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
  const dialog = page.locator('.jp-ConvectRuns-dialog');
  await expect(dialog.getByLabel('Kernel')).toHaveValue('python3');
  await expect(dialog.getByText('The notebook names none.')).toBeVisible();
  await dialog.getByLabel('Kernel').fill('klingon');
  await expect(dialog.getByText('The kernel klingon is not')).toBeVisible();
  const button = dialog.getByRole('button', { name: 'Run', exact: true });
  await expect(button).toBeDisabled();
  await dialog.getByLabel('Kernel').fill('python3');
  // Enter is a line in a text, and Run in a field.
  await dialog.getByText('More').press('Enter');
  const env = dialog.getByLabel('Environment variables');
  await env.pressSequentially('A=1\nB=2');
  await expect(env).toHaveValue('A=1\nB=2');
  await expect(button).toBeEnabled();
  await dialog.getByLabel('Retries').press('Enter');
  await dialog.waitFor({ state: 'detached' });
  const panel = await showRuns(page);
  const row = panel.getByRole('option', { name: 'bare' });
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
  await panel.getByRole('option', { name: 'later' }).click();
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
  await dialog.getByText('More').click();
  await dialog.getByLabel('Files to keep').fill('kept.txt');
  await pressRun(dialog);

  const panel = await showRuns(page);
  const row = panel.getByRole('option', { name: 'typed' }).first();
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
      'import jupyterlab_convect as convect\nassert a < 9\nconvect.metric("score", a * b)',
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
      'from IPython.display import HTML\nprint("<img src=x onerror=window.harmed=2>")\nHTML("<script>window.harmed = 1</script><b>shown</b>")',
      'raise ValueError("no such customer")',
      '"never"'
    )
  );
  await page.context().grantPermissions(['notifications']);
  await page.evaluate(async () => {
    const shown: string[] = [];
    class Shown {
      static permission = 'granted';
      constructor(title: string, { body }: { body: string }) {
        shown.push(`${title} ${body}`);
      }
    }
    Object.assign(window, { Notification: Shown, shown });
    const settings = await window.galata.getPlugin(
      '@jupyterlab/apputils-extension:settings'
    );
    await settings!.set('jupyterlab-convect:plugin', 'notifyInBrowser', true);
  });
  await pressRun(await runAsPipeline(page, path));
  await expect(
    page.getByRole('alert').filter({ hasText: 'failing failed.' })
  ).toContainText('ValueError: no such customer');
  expect(
    await page.evaluate(() => (window as unknown as { shown: string[] }).shown)
  ).toEqual([expect.stringContaining('ValueError: no such customer')]);
  const panel = await showRuns(page);
  const row = panel.getByRole('option', { name: 'failing' });
  await expect(row.getByRole('img', { name: 'Failed' })).toBeVisible();
  await row.click();
  const run = frontPage(page);
  await expect(run.getByRole('alert')).toContainText('no such customer');
  await run.getByTitle('onerror').getByText('from IPython').click();
  await expect(
    run.locator('.jp-ConvectRuns-output').getByText('<img src=x')
  ).toBeVisible();
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
      'import sys, time\nfor i in range(6000):\n    sys.stdout.write(f"\\r\\x1b[32mbar {i}\\x1b[0m")\n    sys.stdout.flush()\n    time.sleep(0.1)'
    )
  );
  await pressRun(await runAsPipeline(page, path));
  const panel = await showRuns(page);
  const row = panel.getByRole('option', { name: 'slow' }).first();
  await expect(row.getByRole('img', { name: 'Running' })).toBeVisible();
  const id = (await row.getAttribute('data-run')) ?? '';
  await row.click();
  const run = frontPage(page);
  await run.getByRole('tab', { name: 'Log' }).click();
  const bar = run.locator('.ansi-green-fg');
  await expect(bar).toHaveText(/bar [1-9]\d/);
  await expect(bar).toHaveCount(1);

  await run.getByRole('button', { name: 'Executed notebook' }).click();
  const output = page.locator('.jp-NotebookPanel:visible .jp-OutputArea');
  const bars = async () =>
    Number(/bar (\d+)/.exec(await output.innerText())?.[1] ?? -1);
  await expect.poll(bars).toBeGreaterThan(0);
  const seen = await bars();
  await expect.poll(bars).toBeGreaterThan(seen);
  await row.click();

  const badge = page.locator(
    '[data-id="jp-convect-runs"] .lm-TabBar-tabLabel'
  );
  await expect(badge).toHaveText('1');
  await page.sidebar.openTab('jp-running-sessions');
  const running = page
    .getByRole('region', { name: 'Runs Section' })
    .locator('.jp-RunningSessions-item')
    .filter({ hasText: 'slow' });
  await expect(running).toBeVisible();

  await run.getByRole('button', { name: 'Terminal' }).click();
  await page.locator('.jp-Terminal:visible').waitFor();
  const shown = () =>
    page.evaluate(() =>
      [...window.jupyterapp.shell.widgets('main')]
        .map(tab => (tab as unknown as ITerminalTab).content?._term?.buffer.active)
        .flatMap(text =>
          Array.from({ length: text?.length ?? 0 }, (_, index) =>
            text!.getLine(index).translateToString()
          )
        )
        .join('')
    );
  await expect.poll(shown).toContain(`runs shell ${id}`);
  await page.keyboard.type('echo it is $PWD\n');
  await expect.poll(shown).toMatch(new RegExp(`it is /\\S*${tmpPath}`));
  await page.keyboard.type('exit\nexit\n');
  await execute(page, 'convect:open-run', { run: id });

  await run.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(run.getByText('Cancelled').first()).toBeVisible();
  await run.getByRole('button', { name: 'Run again', exact: true }).click();
  await showRuns(page);
  await expect(
    panel.getByRole('option').getByRole('img', { name: 'Running' })
  ).toHaveCount(1);
  const again = frontPage(page);
  await page.sidebar.openTab('jp-running-sessions');
  await running.hover();
  await running.getByTitle('Stop').click();
  await expect(again.getByText('Cancelled').first()).toBeVisible();
  await expect(badge).toHaveText('');
  await again.getByRole('button', { name: 'Delete', exact: true }).click();
  await page
    .locator('.jp-Dialog')
    .getByRole('button', { name: 'Delete', exact: true })
    .click();
  await expect(again.getByText('This run has been deleted.')).toBeVisible();
  await again.getByRole('button', { name: 'Executed notebook' }).click();
  await expect(
    page.getByRole('alert').filter({ hasText: 'There is no run' })
  ).toBeVisible();
  await execute(page, 'convect:open-run', { run: 'gone' });
  await expect(
    frontPage(page).getByText('There is no such run.')
  ).toBeVisible();
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
  await page.sidebar.openTab('filebrowser');
  await page.filebrowser.openDirectory(tmpPath);
  const file = (name: string) =>
    page.locator('.jp-DirListing-item').filter({ hasText: name });
  await file('big.py').click();
  await file('small.ipynb').click({ modifiers: ['ControlOrMeta'] });
  await file('small.ipynb').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Run as Pipeline…' }).click();
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

test('a pipeline that failed in part runs again from there', async ({
  page,
  tmpPath
}) => {
  const node = (path: string, after: string[]) => ({
    kind: 'notebook',
    path,
    after
  });
  await upload(
    page,
    `${tmpPath}/partly.pipeline`,
    JSON.stringify({
      convect: 1,
      name: 'partly',
      nodes: {
        first: node('first.ipynb', []),
        second: node('second.ipynb', ['first']),
        third: node('third.ipynb', ['second'])
      }
    })
  );
  const second = (source: string) =>
    upload(page, `${tmpPath}/second.ipynb`, notebook(source));
  await upload(page, `${tmpPath}/first.ipynb`, notebook('print(1)'));
  await second('raise RuntimeError("not yet")');
  await upload(page, `${tmpPath}/third.ipynb`, notebook('print(3)'));
  void execute(page, 'convect:run-as-pipeline', {
    path: `${tmpPath}/partly.pipeline`
  });
  await pressRun(page.locator('.jp-ConvectRuns-dialog'));
  const panel = await showRuns(page);
  await panel.getByRole('option', { name: 'partly' }).click();
  const run = frontPage(page);
  const step = (name: string) => run.locator(`[data-step="${name}"]`);
  await expect(step('third')).toContainText('Skipped because second failed.');
  await expect(step('second').locator('.jp-ConvectRuns-bar')).toBeVisible();
  await expect(run.locator('.react-flow__node')).toHaveCount(3);
  await expect(run.getByRole('alert')).toContainText('not yet');

  await second('print("now")');
  await run.getByRole('button', { name: 'Failed only' }).click();
  const again = frontPage(page);
  const state = (name: string, label: string) =>
    again.locator(`[data-step="${name}"]`).getByRole('img', { name: label });
  await expect(state('third', 'Succeeded')).toBeVisible();
  await expect(state('first', 'Reused')).toBeVisible();

  await again.locator('[data-step="third"]').click();
  await again.getByRole('button', { name: 'From third' }).click();
  await expect(state('third', 'Succeeded')).toBeVisible();
  await expect(state('second', 'Reused')).toBeVisible();
});

test('the runs panel is used by keyboard alone', async ({ page, tmpPath }) => {
  await forgetRuns(page);
  const path = `${tmpPath}/keys.py`;
  await upload(page, path, 'print("keys")\n');
  for (const name of ['one', 'two', 'three']) {
    await page.request.post('/jupyterlab-convect/api/v1/runs', {
      data: { path, name }
    });
  }
  const panel = await showRuns(page);
  const done = panel.getByRole('img', { name: 'Succeeded' });
  await expect(done).toHaveCount(3);
  await expect(panel.getByText('Sweeps')).toBeHidden();
  const list = panel.getByRole('listbox', { name: 'Runs' });
  await panel.getByLabel('Search runs').focus();
  while (!(await list.evaluate(node => node === document.activeElement))) {
    await page.keyboard.press('Tab');
  }
  const selected = panel.getByRole('option', { selected: true });
  await page.keyboard.press('Space');
  await page.keyboard.press('Shift+ArrowDown');
  await expect(selected).toHaveCount(2);
  await expect(panel.getByText('2 marked')).toBeVisible();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await expect(
    frontPage(page).getByRole('columnheader', { name: 'three' })
  ).toBeVisible();
  await expect(frontPage(page).getByText('2 runs')).toBeVisible();
  await list.focus();
  await page.keyboard.press('Escape');
  await expect(selected).toHaveCount(0);

  await page.keyboard.press('End');
  await page.keyboard.press('Enter');
  await expect(
    frontPage(page).getByRole('heading', { name: 'one' })
  ).toBeVisible();
  await list.focus();
  await page.keyboard.press('Shift+F10');
  await expect(page.getByRole('menuitem', { name: 'Copy Link' })).toBeVisible();
  await page.keyboard.press('Escape');
  await list.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('Delete');
  await page.locator('.jp-Dialog').getByText('Delete 1 run?').waitFor();
  await page.keyboard.press('Enter');
  await expect(panel.getByRole('option', { name: 'three' })).toBeHidden();
  await expect(panel.getByRole('option')).toHaveCount(2);

  await panel.getByRole('button', { name: 'Failed' }).press('Enter');
  await expect(panel.getByText('No run matches.')).toBeVisible();
  await panel.getByRole('button', { name: 'Failed' }).press('Enter');
  await panel.getByLabel('Search runs').fill('two');
  await expect(panel.getByRole('option')).toHaveCount(1);
});
