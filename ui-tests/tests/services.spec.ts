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

const ENDPOINTS = '/jupyterlab-convect/api/v1/endpoints';
const CALL = '/jupyterlab-convect/api/v1/call';

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
  const asked = page.getByRole('dialog');
  await expect(asked).toContainText('Make score.ipynb callable');
  await expect(asked).toContainText('Calls run on this machine.');
  await asked.getByRole('button', { name: 'Limits' }).click();
  await asked.getByLabel('Calls per minute').fill('many');
  await asked.getByRole('button', { name: 'Make Callable' }).click();
  await expect(asked).toContainText('Enter a number.');
  await asked.getByLabel('Calls per minute').fill('120');
  await page.keyboard.press('Enter');
  const told = page.getByRole('dialog');
  await expect(told).toContainText('it is not shown again');
  const token = await told.getByLabel('Token').inputValue();
  const address = await told.getByLabel('Address').inputValue();
  await expect(told.getByRole('button', { name: 'Done' })).toBeFocused();
  const saved = savedLayout(page, 'convect-endpoints:');
  await page.keyboard.press('Enter');

  const list = frontPage(page);
  await expect(list.getByRole('heading', { name: 'score.ipynb' })).toBeVisible();
  await expect(list).toContainText('120 per minute');
  await saved;
  await page.reload({ waitForIsReady: false });
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

const MODEL = [
  { source: 'factor = 3', tags: ['parameters'] },
  {
    source: [
      'def predict(x):',
      '    if isinstance(x, bytes):',
      '        return x',
      '    rows = x if isinstance(x, list) else x.to_dict(orient="records")',
      '    if rows and isinstance(rows[0], dict):',
      '        return {"sum": factor * sum(float(row["a"]) for row in rows)}',
      '    return {"y": [factor * each for each in rows]}'
    ].join('\n'),
    tags: ['serve']
  }
];
/** A picture of one pixel. */
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64'
);

test('a function is tried with JSON, a CSV and an image, and its worker is stopped and started', async ({
  page,
  tmpPath,
  context
}) => {
  const path = `${tmpPath}/model.ipynb`;
  await upload(page, path, notebook(...MODEL));
  const made = await page.request.post(ENDPOINTS, {
    data: { path, parameters: { factor: 5 } }
  });
  const { id, token } = (await made.json()) as { id: string; token: string };

  const form = await context.newPage();
  await form.goto(`${new URL(page.url()).origin}${CALL}/${id}`);
  await form.getByLabel('Token of the endpoint').fill(token);
  await form.keyboard.press('Enter');
  const json = form.getByLabel('JSON');
  await expect(json).toBeFocused();
  const answered = form.locator('#predict pre');
  await json.fill('[1, 2]');
  await form.getByRole('button', { name: 'Call the function' }).click();
  await expect(answered).toContainText('"y"', { timeout: 120_000 });
  expect(JSON.parse(await answered.innerText())).toEqual({ y: [5, 10] });
  await json.fill('[1');
  await form.getByRole('button', { name: 'Call the function' }).click();
  await expect(form.locator('#predict [role=status]')).toContainText(
    'The request is not JSON'
  );
  const file = form.locator('input[type=file]');
  await file.setInputFiles({
    name: 'rows.csv',
    mimeType: 'text/csv',
    buffer: Buffer.from('a,b\n1,2\n3,4\n')
  });
  await form.getByRole('button', { name: 'Call the function' }).click();
  await expect(answered).toContainText('"sum": 20');
  await file.setInputFiles({
    name: 'pixel.png',
    mimeType: 'image/png',
    buffer: PIXEL
  });
  const sent = form.waitForResponse(answer =>
    answer.url().endsWith('/predict')
  );
  await form.getByRole('button', { name: 'Call the function' }).click();
  expect(Buffer.compare(await (await sent).body(), PIXEL)).toBe(0);
  await form.close();

  await execute(page, 'convect:show-endpoints', {});
  const services = frontPage(page).getByRole('region', { name: 'Services' });
  const worker = services.locator('li', { hasText: 'predict of model.ipynb' });
  await expect(worker).toContainText('Ready');
  await worker.getByRole('button', { name: 'Log' }).click();
  const log = page.getByRole('dialog');
  await expect(log).toContainText('The log of predict of model.ipynb');
  await log.getByRole('button', { name: 'Done' }).click();
  await worker.getByRole('button', { name: 'Stop' }).click();
  await expect(worker).toContainText('Stopped');
  await worker.getByRole('button', { name: 'Start' }).click();
  await expect(worker).toContainText('Ready', { timeout: 120_000 });
  await worker.getByRole('button', { name: 'Stop' }).click();
  await worker.getByRole('button', { name: 'Remove' }).click();
  await expect(worker).toHaveCount(0);
  await page.request.delete(`${ENDPOINTS}/${id}`);
});
