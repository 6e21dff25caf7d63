import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { answers, freePort, notebook } from './helpers';

/** A server of its own, that can be killed and started again. */
class OwnServer {
  static async create(): Promise<OwnServer> {
    return new OwnServer(await freePort(), mkdtempSync(join(tmpdir(), 'convect-restart-')));
  }

  private constructor(
    readonly port: string,
    readonly home: string
  ) {}

  get address(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    const env = {
      ...process.env,
      CONVECT_UI_PORT: this.port,
      JUPYTERLAB_GALATA_ROOT_DIR: this.home,
      JUPYTER_CONFIG_DIR: join(this.home, '.config'),
      JUPYTER_DATA_DIR: join(this.home, '.data'),
      JUPYTER_RUNTIME_DIR: join(this.home, '.runtime'),
      XDG_CACHE_HOME: join(this.home, '.cache')
    };
    const config = ['--config', 'jupyter_server_test_config.py'];
    this.process = spawn('jupyter-lab', config, { env, stdio: 'ignore' });
    await answers(this.address);
  }

  async kill(): Promise<void> {
    const { process } = this;
    if (process && process.exitCode === null && process.signalCode === null) {
      const gone = new Promise(resolve => process.once('exit', resolve));
      process.kill('SIGKILL');
      await gone;
    }
  }

  private process: ChildProcess | null = null;
}

test('the server is killed in the middle, and the page heals', async ({
  browser
}) => {
  const server = await OwnServer.create();
  const cell =
    'import time\nfor i in range(9000):\n    print("tick", i, flush=True)\n    time.sleep(0.2)';
  writeFileSync(join(server.home, 'ticks.ipynb'), notebook(cell));
  const page = await browser.newPage();
  // JupyterLab says in dialogs of its own that the server is gone.
  await page.addLocatorHandler(
    page.getByRole('dialog', { name: /Server Connection Error/ }),
    dialog => dialog.locator('.jp-Dialog-footer button').last().click()
  );
  try {
    await server.start();
    const begun = await fetch(
      `${server.address}/jupyterlab-convect/api/v1/runs`,
      { method: 'POST', body: JSON.stringify({ path: 'ticks.ipynb' }) }
    );
    const { id } = (await begun.json()) as { id: string };

    await page.goto(`${server.address}/lab?convect-run=${id}`);
    const run = page.locator('.jp-Convect-page');
    await expect(run.getByText('Running').first()).toBeVisible({
      timeout: 120000
    });
    await run.getByRole('tab', { name: 'Log' }).click();
    const log = run.getByRole('log');
    const lastTick = async () => {
      const ticks = (await log.innerText()).match(/tick \d+/g) ?? [];
      return Number((ticks[ticks.length - 1] ?? 'tick -1').slice(5));
    };
    await expect.poll(lastTick).toBeGreaterThan(2);

    await server.kill();
    const before = await lastTick();
    await expect(run.getByText('The server does not answer')).toBeVisible({
      timeout: 120000
    });
    await server.start();
    await expect(run.getByText('The server does not answer')).toBeHidden({
      timeout: 120000
    });
    await expect.poll(lastTick, { timeout: 120000 }).toBeGreaterThan(before);

    await run.getByRole('button', { name: 'Stop', exact: true }).click();
    await expect(run.getByText('Cancelled').first()).toBeVisible();
  } finally {
    await page.close();
    await server.kill();
  }
});
