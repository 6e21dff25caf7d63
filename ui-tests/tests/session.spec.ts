import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import type { Page } from '@playwright/test';
import { expect, test } from '@playwright/test';

import { isRestored, notebook } from './helpers';
import { OwnServer } from './ownserver';

const PASSWORD = 'open, please';
const HASHED = createHash('sha1').update(`${PASSWORD}00`).digest('hex');

const PIPELINE = JSON.stringify({
  convect: 1,
  nodes: { first: { kind: 'command', command: ['true'] } }
});

async function signIn(page: Page, address: string): Promise<void> {
  await page.goto(`${address}/lab`);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.keyboard.press('Enter');
  await isRestored(page);
}

test('a session that ends takes nothing away that was typed', async ({
  browser
}) => {
  const server = await OwnServer.create();
  const parameters = { source: 'lr = 0.1', tags: ['parameters'] };
  writeFileSync(join(server.home, 'a.ipynb'), notebook(parameters, 'print(lr)'));
  writeFileSync(join(server.home, 'b.pipeline'), PIPELINE);
  const context = await browser.newContext();
  try {
    await server.start(
      `--PasswordIdentityProvider.hashed_password=sha1:00:${HASHED}`
    );
    const page = await context.newPage();
    await signIn(page, server.address);
    const open = (command: string, args: Record<string, string>) =>
      page.evaluate(
        ([command, args]) => void window.jupyterapp.commands.execute(command, args),
        [command, args] as const
      );
    await open('convect:show-runs', {});
    const panel = page.locator('#jp-convect-runs');
    await expect(panel).toContainText('No runs yet');
    await open('convect:run-as-pipeline', { path: 'a.ipynb' });
    const dialog = page.locator('.jp-Convect-runDialog');
    await dialog.getByText('One run on This machine').waitFor();
    const field = dialog.getByLabel('lr', { exact: true });
    await context.clearCookies();
    await field.press('Control+A');
    await field.pressSequentially('0.25');
    const run = dialog.getByRole('button', { name: 'Run', exact: true });
    const sentence = 'Your session has ended. Log in again in another tab';
    await expect(dialog).toContainText(sentence);
    await expect(run).toBeDisabled();
    await expect(panel).toContainText(sentence);

    const other = await context.newPage();
    await signIn(other, server.address);
    await expect(panel).not.toContainText(sentence);
    await expect(field).toHaveValue('0.25');
    await run.click();
    await dialog.waitFor({ state: 'detached' });
    const ran = page.locator('.jp-Convect-page:visible');
    await expect(ran).toContainText('Succeeded');
    await expect(ran).toContainText('0.25');

    await open('docmanager:open', { path: 'b.pipeline' });
    const editor = page.locator('.jp-Convect-editor:visible');
    await editor.locator('.jp-Convect-card').dblclick();
    await context.clearCookies();
    const name = editor.locator('.jp-Convect-field[data-path="name"] input');
    await name.pressSequentially('typed meanwhile');
    await page.keyboard.press('Control+S');
    await page
      .getByRole('dialog')
      .getByRole('button', { name: 'Close' })
      .click();
    await expect(name).toHaveValue('typed meanwhile');
    await signIn(other, server.address);
    await name.focus();
    await page.keyboard.press('Control+S');
    const saved = () => readFileSync(join(server.home, 'b.pipeline'), 'utf-8');
    await expect.poll(saved).toContain('typed meanwhile');
  } finally {
    await context.close();
    await server.kill();
  }
});
