import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import { answers, closeConnectionErrors, expect, freePort, notebook, test } from './helpers';

/** Where it was installed for this test. */
const PACKAGES = path.resolve(__dirname, '../../.make/notebook');

test('a notebook in Jupyter Notebook runs, and its run opens in another tab', async ({
  browser
}) => {
  test.skip(!fs.existsSync(PACKAGES), 'Jupyter Notebook is not installed.');
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'convect-notebook-'));
  fs.writeFileSync(path.join(root, 'small.ipynb'), notebook('print("done")'));
  const port = await freePort();
  const home = process.env.CONVECT_UI_HOME!;
  const config = path.join(__dirname, '..', 'jupyter_server_test_config.py');
  const server = spawn(
    'python',
    ['-m', 'notebook', '--config', config, `--ServerApp.root_dir=${root}`],
    {
      cwd: home,
      env: {
        ...process.env,
        CONVECT_UI_PORT: port,
        JUPYTER_CONFIG_DIR: path.join(home, 'config'),
        JUPYTER_DATA_DIR: path.join(home, 'data'),
        JUPYTER_PATH: path.join(PACKAGES, 'share', 'jupyter'),
        PYTHONPATH: PACKAGES,
        JUPYTER_RUNTIME_DIR: path.join(home, 'runtime'),
        XDG_CACHE_HOME: path.join(home, 'cache')
      },
      stdio: 'ignore'
    }
  );
  const url = `http://127.0.0.1:${port}`;
  const context = await browser.newContext();
  try {
    await answers(url);
    const page = await context.newPage();
    await closeConnectionErrors(page);
    await page.goto(`${url}/notebooks/small.ipynb`);
    await page.getByText('Run as pipeline').click();
    const dialog = page.locator('.jp-Convect-runDialog');
    await dialog.getByText('One run on this machine').waitFor();
    const tab = context.waitForEvent('page');
    await dialog.getByRole('button', { name: 'Run', exact: true }).click();
    const run = await tab;
    await closeConnectionErrors(run);
    await run
      .locator('.jp-Convect-titleState[data-state="succeeded"]')
      .waitFor({ timeout: 120000 });
    // The notebook stays where it was.
    await expect(page.locator('.jp-NotebookPanel')).toBeVisible();
  } finally {
    await context.close();
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
    fs.rmSync(root, { recursive: true, force: true });
  }
});
