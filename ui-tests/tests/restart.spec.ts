import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from '@playwright/test';

import { notebook } from './helpers';
import { OwnServer } from './ownserver';

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
    await expect(run.getByText('Stopped').first()).toBeVisible();
  } finally {
    await page.close();
    await server.kill();
  }
});
