import type { IJupyterLabPageFixture } from '@jupyterlab/galata';

import {
  boxOf,
  centerOf,
  connect,
  documentOf,
  drag,
  editorOf,
  field,
  handleOf,
  nodeOf,
  PREPARE,
  textOf,
  TRAIN
} from './editor';
import { execute, expect, openFile, test, upload } from './helpers';

test.use({ viewport: { width: 1400, height: 900 } });

const DOCUMENT = {
  convect: 1,
  nodes: {
    make: { kind: 'notebook', path: 'prepare.ipynb', outputs: ['data/rows.csv'] },
    read: {
      kind: 'notebook',
      path: 'train.ipynb',
      env: { A: '1', B: '2', C: '3' }
    },
    first: { kind: 'command', command: ['echo', '1'] },
    second: { kind: 'command', command: ['echo', '2'] },
    part: { kind: 'group', name: 'Part', members: ['first', 'second'] }
  },
  layout: { make: [0, 0], read: [320, 0], first: [0, 240], second: [320, 240] }
};

async function start(
  page: IJupyterLabPageFixture,
  folder: string,
  name: string
): Promise<string> {
  await upload(page, `${folder}/prepare.ipynb`, PREPARE);
  await upload(page, `${folder}/train.ipynb`, TRAIN);
  const path = `${folder}/${name}.pipeline`;
  await upload(page, path, JSON.stringify(DOCUMENT));
  await openFile(page, path);
  await expect(nodeOf(page, 'read').getByText('rate')).toBeVisible();
  return path;
}

test('files are wired, what is missing is added, and groups move as one', async ({
  page,
  tmpPath
}) => {
  await start(page, tmpPath, 'wires');
  const canvas = editorOf(page).locator('.jp-Convect-canvas');

  // A declared file is an end like others; its wire says path and order at once.
  await connect(
    page,
    handleOf(page, 'make', 'file:data/rows.csv'),
    handleOf(page, 'read', 'in:total')
  );
  await expect
    .poll(async () => (await documentOf(page)).nodes.read)
    .toMatchObject({ parameters: { total: 'data/rows.csv' }, after: ['make'] });
  const wire = editorOf(page).getByLabel(
    '“read” takes the file data/rows.csv from “make” as total'
  );
  await wire.focus();
  await page.keyboard.press('Delete');
  await expect
    .poll(async () => (await documentOf(page)).nodes.read)
    .toEqual(DOCUMENT.nodes.read);

  // What is in a group goes with it, and comes back in one step.
  const header = nodeOf(page, 'part').locator('.jp-Convect-groupHeader');
  const { x, y } = await centerOf(header);
  const moved = async () => {
    const { layout } = await documentOf(page);
    const shift = (id: 'first' | 'second') =>
      layout[id].map((value, index) => value - DOCUMENT.layout[id][index]);
    return [shift('first'), shift('second')];
  };
  await drag(page, { x, y }, { x: x + 60, y: y + 40 });
  await expect
    .poll(async () => {
      const [first, second] = await moved();
      return first[0] > 0 && `${first}` === `${second}`;
    })
    .toBe(true);
  await nodeOf(page, 'first').focus();
  await page.keyboard.press('Control+z');
  await expect.poll(moved).toEqual([
    [0, 0],
    [0, 0]
  ]);

  // A connection that ends where nothing is offers what could be there.
  const box = await boxOf(canvas);
  await drag(page, await centerOf(handleOf(page, 'read', 'out')), {
    x: box.x + box.width - 260,
    y: box.y + 120
  });
  await page.getByRole('menuitem', { name: 'Add Command' }).click();
  await expect
    .poll(async () => (await documentOf(page)).nodes.command?.after)
    .toEqual(['read']);
});

test('the keyboard goes where it is expected, and nothing typed is lost', async ({
  page,
  tmpPath
}) => {
  const path = await start(page, tmpPath, 'keys');

  // Enter shows properties; letters typed there by chance change nothing.
  await nodeOf(page, 'read').focus();
  await page.keyboard.press('Enter');
  await expect(editorOf(page).locator('.jp-Convect-properties')).toBeFocused();
  await page.keyboard.press('c');
  await page.keyboard.press('Escape');
  await expect(nodeOf(page, 'read')).toBeFocused();
  expect((await documentOf(page)).nodes.read).toEqual(DOCUMENT.nodes.read);

  // A variable that is renamed stays where it is, with its value beside it.
  const section = editorOf(page).locator('[data-group="environment"]');
  const names = section.getByRole('textbox', { name: /: name$/ });
  await names.first().fill('Z');
  await names.first().press('Tab');
  await page.keyboard.type('9');
  await page.keyboard.press('Escape');
  await expect
    .poll(async () => (await documentOf(page)).nodes.read)
    .toMatchObject({ env: { Z: expect.stringContaining('9'), B: '2', C: '3' } });
  await expect(field(page, 'env').getByRole('textbox').first()).toHaveValue('Z');

  // Find by name.
  await page.keyboard.press('Control+f');
  const find = editorOf(page).getByRole('searchbox', { name: 'Find nodes' });
  await expect(find).toBeFocused();
  await page.keyboard.type('seco');
  await page.keyboard.press('Enter');
  await expect(nodeOf(page, 'second')).toHaveClass(/selected/);
  await page.keyboard.press('Escape');
  await expect(nodeOf(page, 'second')).toBeFocused();

  // A note is saved while it is written.
  await page.keyboard.press('n');
  const note = editorOf(page).getByRole('textbox', { name: /Text of the note/ });
  await expect(note).toBeFocused();
  await page.keyboard.type('not to be lost');
  await page.keyboard.press('Control+s');
  await expect.poll(() => textOf(page, path)).toContain('not to be lost');
  await expect(note).toBeFocused();
});

test('a file that cannot be written cannot be changed', async ({ page, tmpPath }) => {
  await page.route(/api\/contents\/.*fixed\.pipeline/, async route => {
    const response = await route.fetch();
    const body = await response.text();
    await route.fulfill({
      response,
      body: body.replace('"writable": true', '"writable": false')
    });
  });
  await start(page, tmpPath, 'fixed');
  await expect(
    editorOf(page).getByText('You cannot write this file')
  ).toBeVisible();
  await nodeOf(page, 'read').focus();
  await page.keyboard.press('Delete');
  await execute(page, 'convect:pipeline-add-command', {}).catch(() => undefined);
  expect(await documentOf(page)).toMatchObject(DOCUMENT);
});

test('a pipeline that was opened behind another tab is in sight when it is looked at', async ({
  page,
  tmpPath
}) => {
  const nodes = { one: { kind: 'command', command: ['true'] } };
  const text = JSON.stringify({ convect: 1, nodes, layout: { one: [900, 700] } });
  await upload(page, `${tmpPath}/behind.pipeline`, text);
  await upload(page, `${tmpPath}/front.pipeline`, text);
  await openFile(page, `${tmpPath}/front.pipeline`);
  await expect(nodeOf(page, 'one')).toBeVisible();
  await execute(page, 'docmanager:open', {
    path: `${tmpPath}/behind.pipeline`,
    options: { activate: false }
  });
  await expect(page.locator('.react-flow__node')).toHaveCount(2);
  await page.getByRole('tab', { name: 'behind.pipeline' }).click();
  await expect.poll(async () => (await boxOf(nodeOf(page, 'one'))).width).toBeGreaterThan(100);
  await expect(nodeOf(page, 'one')).toBeInViewport({ ratio: 1 });
});
