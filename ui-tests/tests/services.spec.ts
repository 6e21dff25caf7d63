import { expect, frontPage, notebook, openFile, test, upload } from './helpers';

const SCORE = [
  { source: 'x: int = 1  # how many', tags: ['parameters'] },
  { source: 'twice = 2 * x', tags: ['outputs'] }
];

test('a notebook is made callable, called, and tried on its page', async ({
  page,
  tmpPath,
  context
}) => {
  const path = `${tmpPath}/score.ipynb`;
  await upload(page, path, notebook(...SCORE));
  await openFile(page, path);
  await page.menu.clickMenuItem('Run>Make Callable…');
  const told = page.getByRole('dialog');
  await expect(told).toContainText('it is not shown again');
  const token = await told.getByLabel('Token').inputValue();
  const address = await told.getByLabel('Address').inputValue();
  await page.keyboard.press('Enter');

  const list = frontPage(page);
  await expect(list.getByRole('heading', { name: 'score.ipynb' })).toBeVisible();
  const answer = await fetch(`${address}?wait=60`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: '{"x": 21}'
  });
  expect((await answer.json()).outputs).toEqual({ twice: 42 });

  const opened = context.waitForEvent('page');
  await list.getByRole('button', { name: 'Try It' }).click();
  const form = await opened;
  await form.getByLabel('Token of the endpoint').pressSequentially(token);
  await form.keyboard.press('Enter');
  const field = form.getByLabel('x', { exact: false });
  await expect(field).toBeFocused();
  await field.press('Control+A');
  await field.pressSequentially('4');
  await form.keyboard.press('Enter');
  await expect(form.getByRole('status')).toHaveText('succeeded');
  await expect(form.locator('#output')).toContainText('"twice": 8');
  await form.close();

  await list.getByRole('button', { name: 'Take Back' }).click();
  await expect(list.getByText('Token “first”')).toHaveCount(0);
  const refused = await fetch(address, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
    body: '{}'
  });
  expect(refused.status).toBe(401);
  await list.getByRole('button', { name: 'Remove…' }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: 'Remove' })
    .click();
  await expect(list).toContainText('No endpoints yet');
});
