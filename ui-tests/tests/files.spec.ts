import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';

import {
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

const WRITES = [
  { source: 'text = "first"', tags: ['parameters'] },
  'open("model.txt", "w").write(text)',
  { source: 'length = len(text)', tags: ['outputs'] }
];

async function content(
  page: IJupyterLabPageFixture,
  path: string
): Promise<string | null> {
  const answer = await page.request.get(`/api/contents/${path}`);
  return answer.ok() ? (await answer.json()).content : null;
}

async function finished(page: IJupyterLabPageFixture): Promise<Locator> {
  const run = frontPage(page);
  await expect(
    run.locator('.jp-Convect-title').getByText('Succeeded')
  ).toBeVisible();
  return run;
}

test('what a run made is shown, opened and in the project; both versions run again', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/writes.ipynb`;
  await upload(page, path, notebook(...WRITES));
  const dialog = await runAsPipeline(page, path);
  await expect(dialog).toContainText('Works in its own copy of');
  await pressRun(dialog);
  const panel = await showRuns(page);
  await panel.getByRole('treeitem', { name: 'writes' }).first().click();
  let run = await finished(page);
  await run.getByRole('tab', { name: 'Files' }).click();
  const made = run.locator('[data-file$="model.txt"]');
  await expect(made).toContainText('Was put into the project');
  await expect.poll(() => content(page, `${tmpPath}/model.txt`)).toBe('first');
  await made.getByRole('button', { name: 'model.txt' }).click();
  await expect(
    page.locator('.jp-FileEditor:visible .cm-content')
  ).toContainText('first');

  await openFile(page, path);
  const editor = page.locator('.jp-NotebookPanel:visible .cm-content').first();
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.type(' + " and second"');
  await page.keyboard.press('Control+s');
  await expect
    .poll(async () => JSON.stringify(await content(page, path)))
    .toContain('and second');

  const again = async (version: string) => {
    const row = panel.getByRole('treeitem', { name: 'writes' }).last();
    const first = (await row.getAttribute('data-run')) ?? '';
    await row.click();
    const heading = frontPage(page).getByRole('heading', { level: 2 });
    await expect(heading).toHaveAttribute('title', first);
    await frontPage(page)
      .getByRole('button', { name: 'Run again', exact: true })
      .click();
    const question = page.locator('.jp-Convect-again');
    await expect(question.locator('.jp-Convect-diff')).toContainText(
      'and second'
    );
    await expect(question.getByLabel('Today’s files')).toBeChecked();
    await question.getByLabel(version).focus();
    await page.keyboard.press('Space');
    await question.getByRole('button', { name: 'Run', exact: true }).click();
    await expect(heading).not.toHaveAttribute('title', first);
    run = await finished(page);
    await run.getByRole('tab', { name: 'Values' }).click();
    return run;
  };
  await expect(await again('The version of that run')).toContainText(
    /length\s*5/
  );
  await expect(await again('Today’s files')).toContainText(/length\s*16/);
  await expect
    .poll(() => content(page, `${tmpPath}/model.txt`))
    .toBe('first and second');
});

test('the files of the best run of a sweep are put into the project', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/points.ipynb`;
  await upload(
    page,
    path,
    notebook(
      { source: 'n = 1', tags: ['parameters'] },
      'import jupyterlab_convect as convect\nopen("model.txt", "w").write(str(n))\nconvect.metric("score", n)'
    )
  );
  const dialog = await runAsPipeline(page, path);
  await dialog.getByLabel('n', { exact: true }).focus();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('1, 3, 2');
  await expect(dialog).toContainText('the files that it makes stay with it');
  await dialog.getByLabel('Best').first().selectOption('max');
  await dialog.getByLabel('Metric').focus();
  await page.keyboard.type('score');
  await pressRun(dialog);
  const panel = await showRuns(page);
  await expect(panel.getByText('3 of 3 runs')).toBeVisible();
  await panel.getByRole('treeitem', { name: 'points' }).first().click();
  const sweep = frontPage(page);
  await expect(sweep.getByText('3 of 3 runs have ended')).toBeVisible();
  expect(await content(page, `${tmpPath}/model.txt`)).toBeNull();
  const put = sweep.getByRole('button', { name: 'Put the files of the best' });
  await put.click();
  const question = page.locator('.jp-Dialog');
  await expect(question).toContainText('model.txt');
  await question.getByRole('button', { name: 'Put them into the project' }).click();
  await expect(
    page.getByRole('alert').filter({ hasText: '1 file is in the project now' })
  ).toBeVisible();
  await expect.poll(() => content(page, `${tmpPath}/model.txt`)).toBe('3');

  const row = sweep.locator('.jp-Convect-gridRow', {
    hasNotText: 'Best'
  });
  await row.first().click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'Put Files into' }).click();
  await question.getByRole('button', { name: 'Put them into the project' }).click();
  const spared = page
    .getByRole('alert')
    .filter({ hasText: 'model.txt was not put into the project' });
  await expect(spared).toBeVisible();
  expect(await content(page, `${tmpPath}/model.txt`)).toBe('3');
  await spared.getByRole('button', { name: 'Replace…' }).click();
  await question.getByRole('button', { name: 'Replace', exact: true }).click();
  await expect
    .poll(() => content(page, `${tmpPath}/model.txt`))
    .toBe('1');
});
