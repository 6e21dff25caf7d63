import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import type axe from 'axe-core';

import {
  execute,
  expect,
  frontPage,
  notebook,
  openFile,
  showRuns,
  test,
  upload
} from './helpers';

declare global {
  interface Window {
    axe: typeof axe;
  }
}

const AXE = require.resolve('axe-core');

const SOURCE = notebook(
  { source: 'lr = 0.1', tags: ['parameters'] },
  [
    'import sys',
    'from jupyterlab_convect import metric, output',
    'for step in range(5):',
    '    metric("loss", lr / (step + 1), step=step)',
    'print("out")',
    'print("bad", file=sys.stderr)',
    'output("rows", 3)'
  ].join('\n')
);

const FAILING = notebook('raise ValueError("too large")');

const PIPELINE = JSON.stringify({
  convect: 1,
  nodes: {
    first: { kind: 'notebook', path: 'report.ipynb' },
    second: { kind: 'command', command: ['true'], after: ['first'] },
    gone: { kind: 'notebook', path: 'gone.ipynb', after: ['first'] }
  }
});

/** What a person can have before them, one after the other, each with its name. */
async function* screens(
  page: IJupyterLabPageFixture,
  folder: string,
  words: { button: string; run: string }
): AsyncGenerator<[string, Locator]> {
  const panel = await showRuns(page);
  await panel.locator('.jp-Convect-empty').waitFor();
  yield ['no runs', panel];

  await upload(page, `${folder}/report.ipynb`, SOURCE);
  await upload(page, `${folder}/failing.ipynb`, FAILING);
  await upload(page, `${folder}/all.pipeline`, PIPELINE);
  const dialog = page.locator('.jp-Convect-runDialog');
  const start = async (file: string) => {
    await openFile(page, `${folder}/${file}`);
    await page
      .locator('.jp-NotebookPanel:visible')
      .getByText(words.button)
      .click();
    await dialog.locator('.jp-Convect-summary').waitFor();
  };
  await start('report.ipynb');
  const folded = dialog.locator('[aria-expanded="false"]');
  for (let left = await folded.count(); left > 0; left -= 1) {
    await folded.first().click();
  }
  yield ['the run dialog', dialog.locator('.jp-Dialog-content')];
  await dialog.getByRole('button', { name: words.run, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  const run = frontPage(page);
  const done = run.locator('.jp-Convect-titleState[data-state="succeeded"]');
  await done.waitFor();
  for (const tab of await run.getByRole('tab').all()) {
    await tab.click();
    await run.getByRole('tabpanel').locator('> *').first().waitFor();
    yield [`a run, ${await tab.textContent()}`, run];
  }
  await start('failing.ipynb');
  await dialog.getByRole('button', { name: words.run, exact: true }).click();
  await run.locator('.jp-Convect-failure').waitFor();
  yield ['a run that failed', run];
  yield ['the runs', panel];

  const ids = await panel
    .locator('[data-run]')
    .evaluateAll(rows => rows.map(row => (row as HTMLElement).dataset.run!));
  await execute(page, 'convect:compare-runs', { runs: ids });
  await run.locator('.jp-Convect-compare tbody').first().waitFor();
  yield ['runs compared', run];

  await start('report.ipynb');
  await dialog
    .getByRole('textbox', { name: 'lr' })
    .first()
    .fill('0.1, 0.2');
  await dialog.getByText('× 2').waitFor();
  yield ['the dialog of a sweep', dialog.locator('.jp-Dialog-content')];
  await dialog.getByRole('button', { name: words.run, exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  await run.locator('.jp-Convect-gridRow').nth(1).waitFor();
  yield ['a sweep', run];

  await page.sidebar.openTab('jp-convect-components');
  const catalog = page.locator('#jp-convect-components');
  await catalog.locator('[data-digest]').first().click();
  await catalog.locator('.jp-Convect-preview h2').waitFor();
  yield ['the components', catalog];

  await openFile(page, `${folder}/all.pipeline`);
  const editor = page.locator('.jp-Pipeline-editor:visible');
  await editor.locator('.jp-Pipeline-card').nth(2).waitFor();
  await editor.locator('.jp-Pipeline-card').first().dblclick();
  await editor.locator('.jp-Pipeline-form').waitFor();
  yield ['the editor', editor];
}

test('no screen has a serious barrier', async ({ page, tmpPath }) => {
  test.slow();
  await page.addScriptTag({ path: AXE });
  const found: string[] = [];
  const words = { button: 'Run as pipeline', run: 'Run' };
  for await (const [name, screen] of screens(page, tmpPath, words)) {
    const results = await screen.evaluate(element =>
      window.axe.run(element, {
        // A part of a page has no landmarks.
        rules: { region: { enabled: false } }
      })
    );
    for (const { id, impact, nodes } of results.violations) {
      if (impact === 'serious' || impact === 'critical') {
        found.push(
          ...nodes
            // The buttons of JupyterLab's toolbars are its own.
            .filter(({ html }) => !html.startsWith('<jp-button'))
            .map(({ html }) => `${name}: ${id}: ${html.slice(0, 160)}`)
        );
      }
    }
  }
  expect([...new Set(found)]).toEqual([]);
});

/** Names of things, and words that people wrote themselves: they are the same in all languages. */
const NAMES =
  /^(side|panel|content|section|source|isolated|shared|ctrl|depth|markdown|registry|image|tag|convect|jupyterlab|jupyter|python3?|ipykernel|kubernetes|kubeflow|cpu|gpu|gpus|url|csv|json|sql|id|ids|git|nvidia|com|react|flow|s|b|kb|mb|gb|mi|gi|m|lr|loss|rows|step|report|failing|first|second|gone|all|ipynb|pipeline|true|out|bad|valueerror|too|large|raise|traceback|most|recent|call|last|cell|in|line|root|local|number|string|import|sys|from|metric|output|for|range|print|file|stderr|sha256|linux|x86|64|aarch64|cpython|ansi|log|html|md|txt|yaml|zip|http|https|tensorboard|torchrun|mpi|mpirun|plain|rank|stop)$/i;

/** Words in Latin letters that stand between others, not in code. */
async function latinWords(screen: Locator): Promise<string[]> {
  const texts = await screen.evaluate(root => {
    const skipped =
      'code, pre, kbd, script, style, .cm-editor, .jp-Cell, [contenteditable], .jp-Convect-rowName, .jp-Convect-title h2, .jp-Convect-facts, .jp-Convect-packages, .jp-Convect-preview, .jp-Convect-list .jp-mod-component, .jp-Pipeline-cardName, .jp-Pipeline-cardPath, .react-flow__attribution';
    const found: string[] = [];
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const parent = node.parentElement;
      if (parent && !parent.closest(skipped) && parent.offsetParent) {
        found.push(node.textContent ?? '');
      }
    }
    root
      .querySelectorAll('[placeholder], [aria-label], [title]')
      .forEach(each => {
        if (!each.closest(skipped)) {
          for (const name of ['placeholder', 'aria-label', 'title']) {
            found.push(each.getAttribute(name) ?? '');
          }
        }
      });
    return found;
  });
  return texts.filter(text =>
    (text.match(/(?<![\w./-])[A-Za-z]{3,}(?![\w./-])/g) ?? []).some(
      word => !NAMES.test(word)
    )
  );
}

test('no English is left on a Chinese page', async ({ page, tmpPath }) => {
  test.slow();
  await page.menu.clickMenuItem(
    'Settings>Language>Chinese (Simplified, China) - 中文 (简体, 中国)'
  );
  await page.getByRole('button', { name: 'Change and reload' }).click();
  await page.locator('[lang^="zh"]').first().waitFor({ state: 'attached' });
  await page.goto();
  const found: string[] = [];
  const words = { button: '作为流水线运行', run: '运行' };
  for await (const [name, screen] of screens(page, tmpPath, words)) {
    const left = await latinWords(screen);
    found.push(...left.map(text => `${name}: ${text.trim().slice(0, 120)}`));
  }
  expect([...new Set(found)]).toEqual([]);
});
