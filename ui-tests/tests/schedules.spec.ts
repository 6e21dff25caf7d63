import * as fs from 'node:fs';
import * as path from 'node:path';

import {
  execute,
  expect,
  frontPage,
  notebook,
  openFile,
  savedLayout,
  test,
  upload
} from './helpers';

const SOURCE = notebook(
  { source: 'day = ""', tags: ['parameters'] },
  { source: 'seen = day', tags: ['outputs'] }
);

const SCHEDULES = '/jupyterlab-convect/api/v1/schedules';
const RUNS = '/jupyterlab-convect/api/v1/runs';

test.afterEach(async ({ page }) => {
  const { schedules } = await (await page.request.get(SCHEDULES)).json();
  for (const { id } of schedules as { id: string }[]) {
    await page.request.delete(`${SCHEDULES}/${id}`);
  }
});

test('a notebook is scheduled, its due times are listed, and earlier ones are run', async ({
  page,
  tmpPath
}) => {
  await execute(page, 'convect:show-schedules', {});
  await expect(frontPage(page)).toContainText('No schedules yet');

  const file = `${tmpPath}/report.ipynb`;
  await upload(page, file, SOURCE);
  await openFile(page, file);
  void execute(page, 'convect:schedule', { path: file });
  const dialog = page.locator('.jp-Convect-dialog');
  const cron = dialog.getByLabel('Cron');
  await cron.fill('61 * * * *');
  await expect(dialog).toContainText('is not a cron expression');
  await cron.fill('30 2 * * *');
  await dialog.getByLabel('Time zone').fill('Europe/Berlin');
  await expect(dialog.locator('.jp-Convect-nextTimes li')).toHaveCount(5);
  await expect(dialog).toContainText('occurs twice that night');
  await dialog.getByLabel('Name').fill('nightly');
  await dialog.getByLabel('day', { exact: true }).fill('${{ schedule.date }}');
  const saved = savedLayout(page, 'convect-schedule:2');
  await dialog.getByRole('button', { name: 'Schedule', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });

  const schedule = frontPage(page);
  await expect(schedule.locator('h2')).toHaveText('nightly');
  await expect(schedule).toContainText('Kept by a Jupyter server');
  await expect(schedule).toContainText('Nothing was due so far.');
  await saved;
  await page.reload({ waitForIsReady: false });
  await expect(schedule.locator('h2')).toHaveText('nightly');

  await schedule.getByRole('button', { name: 'Edit…' }).click();
  await dialog.getByLabel('Runs', { exact: true }).selectOption('every');
  await dialog.getByLabel('Every', { exact: true }).fill('2s');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  const lines = schedule.locator('.jp-Convect-ledger tbody tr');
  await expect(lines.filter({ hasText: 'Succeeded' }).first()).toBeVisible();
  await schedule.getByRole('button', { name: 'Pause' }).click();
  await expect(schedule.locator('header')).toContainText('Paused');

  const last = lines.filter({ hasText: 'Succeeded' }).last();
  await last.getByRole('button', { name: 'Run now' }).click();
  await expect(last).toContainText('Open what was run later');

  await schedule.getByRole('button', { name: 'Edit…' }).click();
  await dialog.getByLabel('Runs', { exact: true }).selectOption('cron');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await schedule.getByRole('button', { name: 'Backfill…' }).click();
  await dialog.getByLabel('From').fill('2026-05-01');
  await dialog.getByLabel('To', { exact: true }).fill('2026-05-07');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  await expect(frontPage(page).locator('h2')).toHaveText('nightly: backfill');
  for (const day of ['2026-05-01', '2026-05-04', '2026-05-07']) {
    await expect(frontPage(page)).toContainText(day);
  }

  await execute(page, 'convect:show-schedules', {});
  await expect(frontPage(page).locator('tbody tr')).toContainText('nightly');
});

test('a notebook runs when a file appears, and when a webhook calls', async ({
  page,
  tmpPath
}) => {
  const file = `${tmpPath}/load.ipynb`;
  await upload(page, file, SOURCE);
  await openFile(page, file);
  void execute(page, 'convect:schedule', { path: file });
  const dialog = page.locator('.jp-Convect-dialog');
  await dialog.getByLabel('Runs', { exact: true }).selectOption('file');
  await dialog.getByLabel('Files', { exact: true }).fill(`${tmpPath}/in/*.csv`);
  await dialog.getByLabel('Not changed for').fill('0s');
  await dialog.getByLabel('day', { exact: true }).fill('${{ schedule.file }}');
  await dialog.getByRole('button', { name: 'Schedule', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });

  const schedule = frontPage(page);
  await expect(schedule).toContainText(`file ${tmpPath}/in/*.csv`);
  await page.contents.createDirectory(`${tmpPath}/in`);
  await upload(page, `${tmpPath}/in/one.csv`, '1');
  const lines = schedule.locator('.jp-Convect-ledger tbody tr');
  await expect(lines).toHaveCount(1);
  await expect(lines).toContainText('Succeeded');
  await expect(lines).toContainText('in/one.csv');

  await schedule.getByRole('button', { name: 'Edit…' }).click();
  await dialog.getByLabel('day', { exact: true }).fill('');
  await dialog.getByLabel('Runs', { exact: true }).selectOption('call');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await schedule.getByRole('button', { name: /Show the address/ }).click();
  const address = await schedule.locator('dd code').first().textContent();
  const token = await schedule.locator('dd code').nth(1).textContent();
  const headers = { 'X-Gitlab-Token': String(token) };
  const answer = await page.request.post(String(address), { headers });
  expect(answer.status()).toBe(202);
  const called = lines.filter({ hasText: 'Called' });
  await expect(called).toContainText('Succeeded');
});

test('a notification is made, tried and removed', async ({ page }) => {
  await execute(page, 'convect:show-schedules', {});
  const list = frontPage(page);
  await list.getByRole('button', { name: 'Notifications' }).click();
  const notifications = frontPage(page);
  await expect(notifications).toContainText('No notifications yet');
  await notifications.getByRole('button', { name: 'Add…' }).click();
  const dialog = page.locator('.jp-Convect-dialog');
  await expect(dialog.getByLabel('Name')).toBeFocused();
  await page.keyboard.type('team');
  await dialog.getByLabel('Addresses').pressSequentially('nobody');
  await dialog.getByRole('button', { name: 'Test' }).click();
  await expect(dialog).toContainText('“nobody” is not a mail address.');
  await dialog.getByLabel('By', { exact: true }).selectOption('slack');
  const secret = dialog.getByLabel('Secret with the address');
  await secret.pressSequentially('team/url');
  await dialog.getByLabel('Missed').check();
  await dialog.getByRole('button', { name: 'Add', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });

  const row = notifications.locator('tbody tr');
  await expect(row).toContainText('team');
  await expect(row).toContainText('Failed, Missed');
  await row.getByRole('button', { name: 'Test' }).click();
  await expect(row).toContainText('The secret team/url is not known');
  await row.getByRole('button', { name: 'Remove…' }).click();
  await page.getByRole('button', { name: 'Remove', exact: true }).click();
  await expect(notifications).toContainText('No notifications yet');
});

/** Make a schedule look as if it had been made hours ago and nobody had kept the clock since. */
function abandon(id: string, hours: number): void {
  const home = path.join(process.env.CONVECT_UI_HOME!, 'data', 'convect');
  const folder = path.join(home, 'runs', 'schedules');
  const made = JSON.parse(
    fs.readFileSync(path.join(folder, id, 'schedule.json'), 'utf-8')
  );
  const created = made.created - (hours + 0.75) * 3600;
  const other = { ...made, id: `${id.slice(0, -6)}000000`, created };
  other.name = 'while nobody was there';
  other.clock = { ...made.clock, every: 3600, anchor: created };
  fs.mkdirSync(path.join(folder, '.draft'));
  const draft = path.join(folder, '.draft', 'schedule.json');
  fs.writeFileSync(draft, JSON.stringify(other));
  fs.renameSync(path.join(folder, '.draft'), path.join(folder, other.id));
  fs.utimesSync(path.join(folder, 'changed'), new Date(), new Date());
}

test('due times that nobody was there for are listed, and run afterwards', async ({
  page,
  tmpPath
}) => {
  const file = `${tmpPath}/report.ipynb`;
  await upload(page, file, SOURCE);
  const data = { request: { path: file }, clock: { every: 1e6 }, name: 'now' };
  const made = await (await page.request.post(SCHEDULES, { data })).json();
  abandon(made.id, 5);

  await execute(page, 'convect:show-schedules', {});
  await frontPage(page)
    .getByRole('button', { name: 'while nobody was there' })
    .click();
  const schedule = frontPage(page);
  await expect(schedule.locator('h2')).toHaveText('while nobody was there');
  const lines = schedule.locator('.jp-Convect-ledger tbody tr');
  await expect(lines.filter({ hasText: 'Succeeded' })).toHaveCount(1);
  const missed = lines.filter({ hasText: 'Missed' });
  await expect(missed).toHaveCount(4);
  await missed.first().getByRole('button', { name: 'Run now' }).click();
  await expect(missed.first()).toContainText('Open what was run later');
});

test('how a pinned notebook has changed since is shown, and it is pinned anew', async ({
  page,
  tmpPath
}) => {
  const file = `${tmpPath}/report.ipynb`;
  await upload(page, file, SOURCE);
  const data = {
    request: { path: file },
    clock: { cron: '@yearly' },
    name: 'pinned',
    pinned: true
  };
  await page.request.post(SCHEDULES, { data });
  const edited = notebook(
    { source: 'day = ""', tags: ['parameters'] },
    { source: 'seen = day.upper()', tags: ['outputs'] }
  );
  await upload(page, file, edited);
  await execute(page, 'convect:show-schedules', {});
  await frontPage(page).getByRole('button', { name: 'pinned' }).click();
  const schedule = frontPage(page);
  await schedule.getByRole('button', { name: 'Show the difference' }).click();
  await expect(schedule.getByLabel('Before')).toContainText('seen = day');
  await expect(schedule.getByLabel('After')).toContainText('day.upper()');
  await schedule.getByRole('button', { name: 'Update' }).click();
  await expect(schedule.getByText('Changed since')).toHaveCount(0);
  await expect(schedule.getByLabel('After')).toHaveCount(0);
});

test('a sweep is scheduled from the toolbar of its notebook, by the keyboard', async ({
  page,
  tmpPath
}) => {
  const file = `${tmpPath}/tune.ipynb`;
  const cells = [
    { source: 'n: int = 1\nnote = "first\\nsecond"', tags: ['parameters'] },
    { source: 'seen = [n, note]', tags: ['outputs'] }
  ];
  await upload(page, file, notebook(...cells));
  await openFile(page, file);
  const button = page
    .locator('.jp-NotebookPanel:visible')
    .getByRole('button', { name: 'Schedule it, or make it callable' });
  await button.focus();
  await page.keyboard.press('Enter');
  const menu = page.getByRole('menu').filter({ hasText: 'Make Callable…' });
  await expect(menu).toContainText('Show Schedules');
  await expect(button).toHaveAttribute('aria-expanded', 'true');
  await page.keyboard.press('Escape');
  await expect(menu).toHaveCount(0);
  await expect(button).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(menu).toBeVisible();
  await page.keyboard.press('Enter');

  const dialog = page.locator('.jp-Convect-dialog');
  await expect(dialog).toContainText('Schedule tune.ipynb');
  // A text of several lines keeps them.
  const note = dialog.getByLabel('note', { exact: true });
  await expect(note).toHaveValue('first\nsecond');
  await note.press('Control+End');
  await note.pressSequentially('!');
  const n = dialog.getByLabel('n', { exact: true });
  await n.press('Control+A');
  await n.pressSequentially('two');
  await expect(dialog).toContainText('Give a whole number.');
  await n.press('Control+A');
  await n.pressSequentially('1..3');
  await expect(dialog).toContainText('A sweep of 3 runs each time');
  await dialog.getByLabel('At once').pressSequentially('2');
  await dialog.getByLabel('Name').fill('tuning');
  await dialog.getByRole('button', { name: 'Schedule', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });

  const schedule = frontPage(page);
  await expect(schedule.locator('h2')).toHaveText('tuning');
  await expect(schedule).toContainText('1..3 step 1');
  await schedule.getByRole('button', { name: 'Run now' }).click();
  await expect(frontPage(page)).toContainText('3 of 3 runs have ended');
  const answer = await page.request.get(`${RUNS}?text=tune`);
  const { runs } = (await answer.json()) as {
    runs: { parameters: object; state: string }[];
  };
  expect(runs.map(({ parameters, state }) => ({ ...parameters, state }))).toEqual(
    [3, 2, 1].map(n => ({ n, note: 'first\nsecond!', state: 'succeeded' }))
  );

  await execute(page, 'convect:show-schedules', {});
  await frontPage(page).getByRole('button', { name: 'tuning' }).click();
  await schedule.getByRole('button', { name: 'Edit…' }).click();
  await expect(n).toHaveValue('1..3 step 1');
  await dialog.getByRole('button', { name: 'Back to the default of n', exact: true }).click();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await expect(schedule).not.toContainText('1..3');
  await expect(
    schedule.getByRole('button', { name: 'Backfill…' })
  ).toBeEnabled();
});
