import * as fs from 'node:fs';
import * as path from 'node:path';

import type { IJupyterLabPageFixture } from '@jupyterlab/galata';

import {
  execute,
  expect,
  frontPage,
  openFile,
  pressRun,
  runAsPipeline,
  showRuns,
  test,
  upload
} from './helpers';

const EXAMPLE = path.join(__dirname, '..', '..', 'examples', 'churn');
/** The pictures of the README and the docs; they are kept only when asked for. */
const PICTURES = process.env.CONVECT_SCREENSHOT
  ? path.join(__dirname, '..', '..', 'docs')
  : path.join(__dirname, '..', 'test-results');

test.use({ viewport: { width: 1280, height: 720 } });

async function uploadExample(
  page: IJupyterLabPageFixture,
  folder: string
): Promise<void> {
  for (const name of fs.readdirSync(EXAMPLE)) {
    if (/\.(ipynb|pipeline)$/.test(name)) {
      const text = fs.readFileSync(path.join(EXAMPLE, name), 'utf8');
      await upload(page, `${folder}/${name}`, text);
    }
  }
}

async function takePicture(
  page: IJupyterLabPageFixture,
  name: string
): Promise<void> {
  await page.screenshot({ path: path.join(PICTURES, name) });
}

test('the example pipeline runs on the canvas', async ({ page, tmpPath }) => {
  await uploadExample(page, tmpPath);
  await showRuns(page);
  await openFile(page, `${tmpPath}/churn.pipeline`);
  const editor = page.locator('.jp-Convect-editor:visible');
  await editor.locator('.react-flow__node[data-id="evaluate"]').waitFor();
  await page.getByRole('button', { name: 'Run pipeline' }).click();
  const dialog = page.locator('.jp-Convect-runDialog');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(
    editor
      .locator('.react-flow__node[data-id="evaluate"]')
      .getByRole('img', { name: 'Succeeded' })
  ).toBeVisible({ timeout: 120000 });
  // A node that is done says what it found.
  await expect(
    editor.locator('.react-flow__node[data-id="evaluate"]')
  ).toContainText('accuracy 0.');
  await takePicture(page, 'screenshot.png');
});

test('the first runs of the guide', async ({ page, tmpPath }) => {
  await uploadExample(page, tmpPath);
  const panel = await showRuns(page);
  await pressRun(await runAsPipeline(page, `${tmpPath}/prepare.ipynb`));
  const front = frontPage(page);
  await expect(front.getByText('Succeeded').first()).toBeVisible({
    timeout: 120000
  });

  // One page at a time, so that the pictures show the whole of it.
  await execute(page, 'application:set-mode', { mode: 'single-document' });
  const dialog = await runAsPipeline(page, `${tmpPath}/train.ipynb`);
  await dialog
    .getByLabel('learning_rate', { exact: true })
    .fill('0.05, 0.1, 0.2');
  await expect(dialog.getByText('3 runs on this machine')).toBeVisible();
  await takePicture(page, 'form.png');
  await pressRun(dialog);
  await expect(front.getByText('3 of 3 runs have ended')).toBeVisible({
    timeout: 120000
  });
  const best = front.locator('.jp-Convect-gridRow', { hasText: 'Best' });
  // The best of all three, and not of those that ended first.
  await expect(best).toContainText('0.2');
  await expect(panel.getByText('3 of 3 runs')).toBeVisible();
  await takePicture(page, 'sweep.png');

  const run = (await best.getAttribute('data-run')) ?? '';
  await execute(page, 'convect:open-run', { run });
  await front.getByRole('tab', { name: 'Metrics' }).click();
  await expect(front.locator('canvas').first()).toBeVisible();
  await takePicture(page, 'run.png');
});
