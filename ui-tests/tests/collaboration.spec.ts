import type { Browser, Page } from '@playwright/test';
import type { ChildProcess } from 'node:child_process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

import { documentOf, field, nameOf, nodeOf, TRAIN } from './editor';
import { answers, closeConnectionErrors, expect, freePort, test } from './helpers';

/** A JupyterLab of its own, with live collaboration on. */
async function startShared(
  root: string,
  port: string
): Promise<{ server: ChildProcess; url: string }> {
  const home = process.env.CONVECT_UI_HOME!;
  const server = spawn(
    'jupyter',
    [
      'lab',
      '--config',
      path.join(__dirname, '..', 'jupyter_server_test_config.py'),
      `--ServerApp.root_dir=${root}`
    ],
    {
      // It keeps the history of its documents in the working folder.
      cwd: home,
      env: {
        ...process.env,
        CONVECT_UI_RTC: '1',
        CONVECT_UI_PORT: port,
        JUPYTER_CONFIG_DIR: path.join(home, 'config'),
        JUPYTER_DATA_DIR: path.join(home, 'data'),
        JUPYTER_RUNTIME_DIR: path.join(home, 'runtime'),
        XDG_CACHE_HOME: path.join(home, 'cache')
      },
      stdio: 'ignore'
    }
  );
  const url = `http://127.0.0.1:${port}`;
  await answers(url);
  return { server, url };
}

/**
 * Open the pipeline as one more person.
 *
 * jupyter-collaboration asks what to do when a document is not there after five
 * seconds, which happens on a busy machine and when a request was lost: a person
 * would press Retry.
 */
async function join(browser: Browser, address: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await closeConnectionErrors(page);
  await page.addLocatorHandler(
    page.locator('.jp-Dialog', { hasText: 'taking some time to load' }),
    dialog => dialog.getByRole('button', { name: 'Retry' }).click()
  );
  // The server saves for both a moment later; who saves by hand just then is asked, and says yes.
  await page.addLocatorHandler(
    page.locator('.jp-Dialog', { hasText: 'has changed on disk' }),
    dialog => dialog.getByRole('button', { name: 'Overwrite' }).click()
  );
  await page.goto(address);
  await nodeOf(page, 'train').dblclick({ position: { x: 60, y: 20 } });
  return page;
}

test('two people edit one pipeline at once', async ({ browser }) => {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'convect-shared-'));
  const file = path.join(root, 'ours.pipeline');
  const onDisk = () => fs.readFileSync(file, 'utf-8');
  /** The file when nobody is in the middle of writing it: the server empties it first. */
  const whole = async () => {
    let text = '';
    await expect(() => JSON.parse((text = onDisk()))).toPass();
    return text;
  };
  fs.writeFileSync(path.join(root, 'train.ipynb'), TRAIN);
  // Written by hand: in an order and with spaces of its own.
  const written =
    '{"nodes": {"train": {"path": "train.ipynb",  "kind": "notebook"}}, "convect": 1}';
  fs.writeFileSync(file, written);
  const { server, url } = await startShared(root, await freePort());
  try {
    const one = await join(browser, `${url}/doc/tree/ours.pipeline`);
    const two = await join(browser, `${url}/doc/tree/ours.pipeline`);
    await one.keyboard.press('Control+s');
    await expect(field(two, 'path').locator('input')).toHaveValue('train.ipynb');
    await expect.poll(onDisk).toBe(written);

    // Each sees where the other points, and what the other has selected.
    await one.locator('.react-flow__pane').hover({ position: { x: 200, y: 300 } });
    await expect(two.locator('.jp-Convect-other')).toBeVisible();
    await expect(two.locator('.jp-Convect-otherRing')).toHaveCount(1);

    await field(one, 'name').locator('input').fill('Fit');
    await expect(nameOf(two, 'train')).toHaveText('Fit');
    await field(two, 'parameters.rate').locator('input').fill('0.75');
    await expect(field(one, 'parameters.rate').locator('input')).toHaveValue('0.75');
    // Each undoes their own.
    await nodeOf(one, 'train').click({ position: { x: 60, y: 20 } });
    await one.keyboard.press('Control+z');
    await expect(nameOf(two, 'train')).not.toHaveText('Fit');
    await expect(field(two, 'parameters.rate').locator('input')).toHaveValue('0.75');
    await one.keyboard.press('Control+s');
    await expect.poll(onDisk).toContain('"rate": 0.75');
    await expect.poll(whole).toMatch(/^\{\n {2}"convect": 1,\n/);

    // A change made outside reaches both, and what they do next is on top of it. The server may
    // be about to save what they did before: it writes over what it has not seen yet.
    await expect(async () => {
      const outside = (await whole()).replace('0.75', '0.5').replace('"rate"', '"total": 7, "rate"');
      fs.writeFileSync(file, outside);
      for (const page of [one, two]) {
        const rate = field(page, 'parameters.rate').locator('input');
        await expect(rate).toHaveValue('0.5', { timeout: 20000 });
      }
    }).toPass({ timeout: 240000 });
    await field(two, 'name').locator('input').fill('Learn');
    await expect(nameOf(one, 'train')).toHaveText('Learn');
    await expect.poll(onDisk).toContain('"name": "Learn"');
    const saved = async () => JSON.parse(await whole());
    await expect
      .poll(async () => (await saved()).nodes.train.parameters)
      .toEqual({ rate: 0.5, total: 7 });
    await expect(async () => {
      expect(await documentOf(one)).toEqual(await saved());
    }).toPass();

    // Also when somebody is editing at that very moment.
    await field(one, 'name').locator('input').fill('Mine');
    await expect(async () => {
      fs.writeFileSync(file, (await whole()).replace('"total": 7', '"total": 8'));
      const total = field(two, 'parameters.total').locator('input');
      await expect(total).toHaveValue('8', { timeout: 20000 });
    }).toPass({ timeout: 240000 });
    await expect.poll(onDisk).toContain('"total": 8');
  } finally {
    await Promise.all(browser.contexts().map(context => context.close()));
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
    fs.rmSync(root, { recursive: true, force: true });
  }
});
