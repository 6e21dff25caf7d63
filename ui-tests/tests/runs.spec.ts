import type { IJupyterLabPageFixture } from '@jupyterlab/galata';

import {
  execute,
  expect,
  frontPage,
  notebook,
  openFile,
  pressRun,
  runAsPipeline,
  showRuns,
  speakChinese,
  test,
  upload
} from './helpers';

interface ITerminalTab {
  content?: {
    _term?: {
      buffer: {
        active: {
          length: number;
          getLine(index: number): { translateToString(trim: boolean): string };
        };
      };
    };
  };
}

/** All that the terminals show. */
function terminalText(page: IJupyterLabPageFixture): Promise<string> {
  return page.evaluate(() =>
    [...window.jupyterapp.shell.widgets('main')]
      .map(tab => (tab as unknown as ITerminalTab).content?._term?.buffer.active)
      .flatMap(text =>
        Array.from({ length: text?.length ?? 0 }, (_, index) =>
          text!.getLine(index).translateToString(true)
        )
      )
      .join('')
  );
}

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
    await settings!.set('jupyterlab-convect:notifications', 'notifyInBrowser', true);
    await settings!.set('jupyterlab-convect:opener', 'openOnRun', false);
  });
  await pressRun(await runAsPipeline(page, path));
  // One notice: that of the start makes way for that of the end.
  const notices = page.getByRole('alert').filter({ hasText: 'failing' });
  await expect(notices).toContainText(
    /failing failed\..*ValueError: no such customer/
  );
  await expect
    .poll(() =>
      page.evaluate(() => (window as unknown as { shown: string[] }).shown)
    )
    .toEqual([expect.stringContaining('ValueError: no such customer')]);
  const panel = await showRuns(page);
  const row = panel.getByRole('treeitem', { name: 'failing' });
  await expect(row.getByRole('img', { name: 'Failed' })).toBeVisible();
  await row.click();
  const run = frontPage(page);
  await expect(run.getByRole('alert')).toContainText('no such customer');
  await run.getByTitle('onerror').getByText('from IPython').click();
  await expect(
    run.locator('.jp-Convect-output').getByText('<img src=x')
  ).toBeVisible();
  await run.getByRole('button', { name: 'Executed notebook' }).click();
  const executed = page.locator('.jp-NotebookPanel:visible');
  await expect(
    executed.locator('.jp-Cell.jp-mod-active').getByText('no such customer').first()
  ).toBeInViewport();
  expect(await page.evaluate(() => 'harmed' in window)).toBe(false);
});

test('a run from a terminal is shown as it goes, and its failure is told', async ({
  page,
  tmpPath
}) => {
  await upload(page, `${tmpPath}/long.ipynb`, notebook('import time; time.sleep(600)'));
  await upload(page, `${tmpPath}/short.ipynb`, notebook('raise ValueError("no luck")'));
  const panel = await showRuns(page);
  await execute(page, 'terminal:create-new', { cwd: tmpPath });
  const prompt = () =>
    expect.poll(() => terminalText(page)).toMatch(/[$#] *$/);
  await page.locator('.jp-Terminal:visible').click();
  await prompt();
  await page.keyboard.type('convect run long.ipynb\n');
  const long = panel.getByRole('treeitem', { name: 'long' });
  await expect(long.getByRole('img', { name: 'Running' })).toBeVisible();
  await long.hover();
  await long.getByRole('button', { name: 'Stop long' }).click();
  await expect(long.getByRole('img', { name: 'Stopped' })).toBeVisible();

  await page.locator('.jp-Terminal:visible').click();
  await prompt();
  await page.keyboard.type('convect run short.ipynb\n');
  await expect(
    page.getByRole('alert').filter({ hasText: 'short failed.' })
  ).toContainText('ValueError: no luck');
  await expect(
    panel.getByRole('treeitem', { name: 'short' }).getByRole('img', { name: 'Failed' })
  ).toBeVisible();
});

test('a run is named and noted, and its curves are drawn and compared', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/curve.ipynb`;
  const cell =
    'from jupyterlab_convect import metric\nfor i in range(20):\n    metric("loss", 1 / (i + 1), step=i)';
  await upload(page, path, notebook(cell));
  await pressRun(await runAsPipeline(page, path));
  const run = frontPage(page);
  await expect(run.getByText('Succeeded').first()).toBeVisible();
  await run.getByRole('button', { name: 'Name, labels and note' }).click();
  const dialog = page.locator('.jp-Dialog');
  await dialog.getByLabel('Name').fill('baseline');
  await dialog.getByLabel('Labels').fill('team=churn');
  await dialog.getByLabel('Note').fill('The first one.');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await expect(run.getByRole('heading', { name: 'baseline' })).toBeVisible();
  await expect(run.getByText('team=churn')).toBeVisible();
  await expect(run.getByText('The first one.')).toBeVisible();
  const panel = await showRuns(page);
  const row = panel.getByRole('treeitem', { name: 'baseline' });
  await expect(row).toBeVisible();

  await run.getByRole('tab', { name: 'Metrics' }).click();
  await run.getByLabel('Logarithmic').check();
  await expect(run.getByLabel('loss over time, 20 points')).toBeVisible();
  await run.getByRole('button', { name: 'Compare with other runs' }).click();
  const compared = frontPage(page);
  await expect(compared.getByRole('heading', { name: 'Curves' })).toBeVisible();
  await expect(compared.getByLabel('loss over time, 20 points')).toBeVisible();
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
  const row = panel.getByRole('treeitem', { name: 'slow' }).first();
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
  const shown = () => terminalText(page);
  await expect.poll(shown).toMatch(new RegExp(`runs shell ${id}[^]*[$#] *$`));
  await page.keyboard.type('echo it is $PWD\n');
  await expect.poll(shown).toMatch(new RegExp(`it is /\\S*${tmpPath}`));
  await page.keyboard.type('exit\nexit\n');
  await execute(page, 'convect:open-run', { run: id });

  await run.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(run.getByText('Stopped').first()).toBeVisible();
  await run.getByRole('button', { name: 'Run again', exact: true }).click();
  await showRuns(page);
  await expect(
    panel.getByRole('treeitem').getByRole('img', { name: 'Running' })
  ).toHaveCount(1);
  const again = frontPage(page);
  await page.sidebar.openTab('jp-running-sessions');
  await expect(running).toHaveCount(1);
  await running.hover();
  await running.getByTitle('Stop').click();
  await expect(again.getByText('Stopped').first()).toBeVisible();
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
  await speakChinese(page);
  await openFile(page, path);
  await page
    .locator('.jp-NotebookPanel:visible')
    .getByText('作为流水线运行')
    .click();
  const dialog = page.locator('.jp-Convect-runDialog');
  await dialog.getByRole('button', { name: '运行', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.sidebar.openTab('jp-convect-runs');
  const row = page
    .locator('#jp-convect-runs')
    .getByRole('treeitem', { name: '你好' });
  await expect(row.getByRole('img', { name: '成功' })).toBeVisible();

  // On the canvas, too: buttons, states, and what is wrong.
  const nodes = {
    早: { kind: 'command', command: ['false'] },
    晚: { kind: 'command', command: ['true'], after: ['早'] },
    无: { kind: 'notebook', path: '无.ipynb' }
  };
  const pipeline = `${tmpPath}/流水线.pipeline`;
  await upload(page, pipeline, JSON.stringify({ convect: 1, nodes }));
  await openFile(page, pipeline);
  const editor = page.locator('.jp-Convect-editor:visible');
  await expect(editor.getByRole('button', { name: '没有文件' })).toBeVisible();
  await execute(page, 'convect:pipeline-problems', {});
  await expect(editor.getByRole('tab', { name: '问题（1）' })).toBeVisible();
  await expect(page.locator('.jp-Toolbar:visible').getByText('运行流水线')).toBeVisible();
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
  await pressRun(page.locator('.jp-Convect-runDialog'));
  const panel = await showRuns(page);
  await panel.getByRole('treeitem', { name: 'partly' }).click();
  const run = frontPage(page);
  const step = (name: string) => run.locator(`[data-step="${name}"]`);
  await expect(step('third')).toContainText('Skipped because “second” failed.');
  await expect(step('second').locator('.jp-Convect-bar')).toBeVisible();
  await expect(run.locator('.react-flow__node')).toHaveCount(3);
  await expect(run.getByRole('alert')).toContainText('not yet');
  // The graph and the list look at the same step, whichever was clicked.
  const looked = run.locator('.react-flow__node.selected');
  await expect(looked).toHaveAttribute('data-id', 'second');
  await step('third').click();
  await expect(looked).toHaveAttribute('data-id', 'third');
  await step('second').click();

  await second('print("now")');
  await run.getByRole('button', { name: 'Run failed steps again' }).click();
  const question = page.locator('.jp-Convect-again');
  await expect(question).toContainText('second.ipynb');
  await question.getByRole('button', { name: 'Run', exact: true }).click();
  const again = frontPage(page);
  const state = (name: string, label: string) =>
    again.locator(`[data-step="${name}"]`).getByRole('img', { name: label });
  await expect(state('third', 'Succeeded')).toBeVisible();
  await expect(state('first', 'Reused')).toBeVisible();

  await again.locator('[data-step="third"]').click();
  await again.getByRole('button', { name: 'Run again from third' }).waitFor();
  await again.locator('[data-step="third"]').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Run Again from Here' }).click();
  await expect(state('third', 'Succeeded')).toBeVisible();
  await expect(state('second', 'Reused')).toBeVisible();
});

test('the runs panel is used by keyboard alone', async ({ page, tmpPath }) => {
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
  const list = panel.getByRole('tree', { name: 'Runs' });
  await panel.getByLabel('Search runs').focus();
  while (!(await list.evaluate(node => node === document.activeElement))) {
    await page.keyboard.press('Tab');
  }
  const selected = panel.getByRole('treeitem', { selected: true });
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
  // All runs, not all words of the page, also with Caps Lock.
  await page.keyboard.press('Control+A');
  await expect(selected).toHaveCount(3);
  expect(await page.evaluate(() => String(getSelection()))).toBe('');
  await page.keyboard.press('Escape');

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
  await expect(panel.getByRole('treeitem', { name: 'three' })).toBeHidden();
  await expect(panel.getByRole('treeitem')).toHaveCount(2);

  await panel.getByRole('button', { name: 'Failed' }).press('Enter');
  await expect(panel.getByText('No run matches.')).toBeVisible();
  await panel.getByRole('button', { name: 'Failed' }).press('Enter');
  await panel.getByLabel('Search runs').fill('two');
  await expect(panel.getByRole('treeitem')).toHaveCount(1);
});

test('a page that is moved keeps its log, and its place in it', async ({ page, tmpPath }) => {
  const path = `${tmpPath}/chatty.ipynb`;
  const source = 'for i in range(3000):\n    print("line", i)';
  await upload(page, path, notebook(source, 'import time; time.sleep(600)'));
  await pressRun(await runAsPipeline(page, path));
  const run = frontPage(page);
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('line 2999')).toBeVisible();
  await run.getByLabel('Search the log').fill('line 1500');
  const hit = run.locator('.jp-Convect-logLine.jp-mod-current');
  await expect(hit).toHaveText('line 1500');

  const asked: string[] = [];
  page.on('request', request => {
    const [, what] = request.url().split('/jupyterlab-convect/api/v1/');
    if (/\/(log|events)\b/.test(what ?? '')) {
      asked.push(what);
    }
  });
  // To the right of the notebook: JupyterLab takes the page down and puts it up again.
  await page.evaluate(() => {
    const { shell } = window.jupyterapp;
    shell.add(shell.currentWidget!, 'main', { mode: 'split-bottom' });
  });
  await expect(run.getByLabel('Search the log')).toHaveValue('line 1500');
  await expect(hit).toHaveText('line 1500');
  expect(asked.filter(each => each.includes('last='))).toEqual([]);

  await run.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(run.getByText('Stopped').first()).toBeVisible();
});

test('a page behind another one asks for nothing', async ({ page, tmpPath }) => {
  const begin = async (name: string, seconds: number) => {
    const path = `${tmpPath}/${name}.ipynb`;
    const source = `import time\nprint("begun")\ntime.sleep(${seconds})`;
    await upload(page, path, notebook(source));
    const made = await page.request.post('/jupyterlab-convect/api/v1/runs', {
      data: { path, settings: { resources: { cpu: '100m' } } }
    });
    return (await made.json()).id as string;
  };
  const behind = await begin('behind', 600);
  await execute(page, 'convect:open-run', { run: behind });
  const run = frontPage(page);
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('begun')).toBeVisible();

  const front = await begin('front', 5);
  await execute(page, 'convect:open-run', { run: front });
  await expect(run.locator('h2')).toHaveText('front');
  const asked: string[] = [];
  page.on('request', request => {
    if (request.url().includes(`/runs/${behind}`)) {
      asked.push(request.url());
    }
  });
  await run.locator('.jp-Convect-titleState[data-state="succeeded"]').waitFor();
  expect(asked).toEqual([]);
  await page.request.post(`/jupyterlab-convect/api/v1/runs/${behind}/stop`, {
    data: {}
  });
});
