import * as fs from 'node:fs';
import * as path from 'node:path';

import { expect, openFile, showRuns, test, upload } from './helpers';

const EXAMPLE = path.join(__dirname, '..', '..', 'examples', 'churn');
/** The picture of the README; it is kept only when asked for: `CONVECT_SCREENSHOT=1`. */
const PICTURE = process.env.CONVECT_SCREENSHOT
  ? path.join(__dirname, '..', '..', 'docs', 'screenshot.png')
  : path.join(__dirname, '..', 'test-results', 'screenshot.png');

test.use({ viewport: { width: 1280, height: 720 } });

test('the example pipeline runs on the canvas', async ({ page, tmpPath }) => {
  for (const name of fs.readdirSync(EXAMPLE)) {
    if (/\.(ipynb|pipeline)$/.test(name)) {
      const text = fs.readFileSync(path.join(EXAMPLE, name), 'utf8');
      await upload(page, `${tmpPath}/${name}`, text);
    }
  }
  await showRuns(page);
  await openFile(page, `${tmpPath}/churn.pipeline`);
  const editor = page.locator('.jp-Pipeline-editor:visible');
  await editor.locator('.react-flow__node[data-id="evaluate"]').waitFor();
  await page.getByRole('button', { name: 'Run pipeline' }).click();
  const dialog = page.locator('.jp-ConvectRuns-dialog');
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
  await page.screenshot({ path: PICTURE });
});
