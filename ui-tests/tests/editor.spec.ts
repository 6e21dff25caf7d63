import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import * as fs from 'node:fs';

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
  REPORT,
  textOf,
  TRAIN
} from './editor';
import { execute, expect, frontPage, isRestored, openFile, test, upload } from './helpers';

test.use({ viewport: { width: 1400, height: 900 } });

interface ITab {
  toolbar: { node: HTMLElement; processMessage(message: object): void };
  processMessage(message: object): void;
}

/** Make the notebooks, show their folder, and open an empty pipeline in it. */
async function start(page: IJupyterLabPageFixture, folder: string): Promise<void> {
  await upload(page, `${folder}/prepare.ipynb`, PREPARE);
  await upload(page, `${folder}/train.ipynb`, TRAIN);
  await upload(page, `${folder}/report.ipynb`, REPORT);
  await page.filebrowser.openDirectory(folder);
  await page
    .locator('.jp-LauncherCard', { hasText: 'Generic pipeline editor' })
    .click();
  await expect(editorOf(page).getByText('Drag notebooks or scripts here')).toBeVisible();
}

test('a pipeline is built by dragging, saved, undone, run and watched', async ({
  page,
  tmpPath
}) => {
  await start(page, tmpPath);
  const canvas = editorOf(page).locator('.jp-Convect-canvas');
  const box = await boxOf(canvas);
  const fileNamed = (name: string) =>
    page.locator('.jp-DirListing-item:visible', { hasText: name });

  await drag(page, await centerOf(fileNamed('prepare.ipynb')), {
    x: box.x + 60,
    y: box.y + 120
  });
  await expect(nodeOf(page, 'prepare').getByText('rows')).toBeVisible();
  // Two at once.
  await fileNamed('report.ipynb').click();
  await fileNamed('train.ipynb').click({ modifiers: ['Control'] });
  await drag(page, await centerOf(fileNamed('train.ipynb')), {
    x: box.x + 420,
    y: box.y + 60
  });
  await expect(nodeOf(page, 'report')).toBeVisible();
  await expect(nodeOf(page, 'train').getByText('rate')).toBeVisible();

  const nodes = async () => (await documentOf(page)).nodes;
  await connect(page, handleOf(page, 'prepare', 'out:total'), handleOf(page, 'train', 'in:total'));
  await expect
    .poll(async () => (await nodes()).train.parameters)
    .toEqual({ total: '${{ nodes.prepare.outputs.total }}' });
  await connect(page, handleOf(page, 'train', 'out'), nodeOf(page, 'report'));
  await expect.poll(async () => (await nodes()).report.after).toEqual(['train']);
  const refusal = editorOf(page)
    .locator('.jp-Convect-connectionHint')
    .getByText('This would be a cycle: prepare → train → report → prepare.');
  await connect(page, handleOf(page, 'report', 'out'), nodeOf(page, 'prepare'), async () => {
    await expect(refusal).toBeVisible();
  });
  await expect(refusal).toBeHidden();
  expect((await nodes()).prepare.after).toBeUndefined();

  // A parameter and a GPU, from the context menu's properties.
  await nodeOf(page, 'train').click({ position: { x: 60, y: 20 } });
  await nodeOf(page, 'train').click({ button: 'right', position: { x: 60, y: 20 } });
  await page.getByRole('menuitem', { name: 'Properties' }).click();
  await expect(field(page, 'parameters.rate').getByText('how fast to learn')).toBeVisible();
  await field(page, 'parameters.rate').locator('input').fill('0.25');
  await field(page, 'resources.gpu').locator('input').first().fill('0');
  await field(page, 'resources.memory').locator('input').first().fill('64Mi');
  await expect(nodeOf(page, 'train').getByTitle('Memory: 64Mi')).toBeVisible();
  await field(page, 'resources.memory').locator('input').first().fill('lots');
  await expect(field(page, 'resources.memory').getByRole('alert')).toBeVisible();
  await expect(editorOf(page).getByRole('tab', { name: 'Problems (1)' })).toBeVisible();
  await field(page, 'resources.memory').locator('input').first().fill('64Mi');
  await expect(field(page, 'resources.memory').getByRole('alert')).toBeHidden();

  // One gesture is one step, also when it was many letters.
  await nodeOf(page, 'train').click({ position: { x: 60, y: 20 } });
  await page.keyboard.press('Control+z');
  const resources = async () => (await nodes()).train.resources;
  await expect.poll(resources).toEqual({ gpu: 0 });
  await page.keyboard.press('Control+Shift+z');
  await expect.poll(resources).toEqual({ gpu: 0, memory: '64Mi' });

  await page.keyboard.press('Control+s');
  const path = `${tmpPath}/untitled.pipeline`;
  await expect.poll(() => textOf(page, path)).toContain('"rate": 0.25');
  await page.reload({ waitForIsReady: false });
  await isRestored(page);
  await openFile(page, path);
  await expect(nodeOf(page, 'train').getByTitle('Memory: 64Mi')).toBeVisible();

  await page.getByRole('button', { name: 'Run Pipeline' }).click();
  const dialog = page.locator('.jp-Convect-runDialog');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  for (const id of ['prepare', 'train', 'report']) {
    await expect(nodeOf(page, id).getByRole('img', { name: 'Succeeded' })).toBeVisible();
  }
  // Click through to what the step did, with the value it was handed.
  await nodeOf(page, 'train').locator('.jp-Convect-status').click();
  const run = frontPage(page);
  await run.getByRole('button', { name: 'Executed notebook' }).click();
  const executed = page.locator('.jp-NotebookPanel:visible');
  await expect(
    executed.locator('.jp-OutputArea').getByText('trained on 20 at 0.25')
  ).toBeVisible();
});

test('buttons come back that the toolbar put away while the tab was narrow', async ({
  page,
  tmpPath
}) => {
  await start(page, tmpPath);
  const run = page.getByRole('button', { name: 'Run Pipeline' });
  await expect(run).toBeVisible();
  await page.evaluate(() => {
    const { toolbar } = window.jupyterapp.shell.currentWidget as unknown as ITab;
    const { node } = toolbar;
    const resize = { type: 'resize', width: node.clientWidth, height: -1 };
    // It is wide again while the buttons are still being moved for a narrow tab.
    Object.defineProperty(node, 'clientWidth', {
      configurable: true,
      get: () => {
        Reflect.deleteProperty(node, 'clientWidth');
        toolbar.processMessage(resize);
        return 60;
      }
    });
    toolbar.processMessage(resize);
  });
  await expect(run).toBeHidden();
  await page.evaluate(() => {
    const tab = window.jupyterapp.shell.currentWidget as unknown as ITab;
    tab.processMessage({ type: 'resize', width: -1, height: -1 });
  });
  await expect(run).toBeVisible();
});

test('everything can be done by keyboard', async ({ page, tmpPath }) => {
  await start(page, tmpPath);
  await expect(editorOf(page).locator('.jp-Convect-canvas')).toBeFocused();
  const spoken = editorOf(page).locator('.jp-Convect-announcer');
  const focused = editorOf(page).locator('.react-flow__node:focus');

  // A: add files.
  await page.keyboard.press('a');
  const dialog = page.locator('.jp-Dialog');
  await dialog.locator('.jp-DirListing-item', { hasText: 'prepare' }).click();
  await dialog
    .locator('.jp-DirListing-item', { hasText: 'train' })
    .click({ modifiers: ['Control'] });
  await page.keyboard.press('Enter');
  await expect(focused).toHaveAttribute('data-id', 'prepare');
  await expect(spoken).toHaveText(/2 nodes added/);

  // C: connect; the arrow keys with Control go to another node; Enter ends it.
  await page.keyboard.press('c');
  await page.keyboard.press('Control+ArrowDown');
  await expect(focused).toHaveAttribute('data-id', 'train');
  await page.keyboard.press('Enter');
  await expect(spoken).toHaveText('“train” runs after “prepare” now.');
  // The other way round is refused, and said.
  await page.keyboard.press('c');
  await page.keyboard.press('Control+ArrowLeft');
  await expect(focused).toHaveAttribute('data-id', 'prepare');
  await page.keyboard.press('Enter');
  await expect(spoken).toHaveText(/This would be a cycle: prepare → train → prepare/);
  await page.keyboard.press('Escape');

  // Arrows move, and what is done in a row is undone at once.
  const placeOf = async () => (await documentOf(page)).layout.prepare;
  const before = await placeOf();
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('Shift+ArrowUp');
  await expect.poll(placeOf).toEqual([before[0] - 20, before[1] - 50]);
  await page.keyboard.press('Control+z');
  await expect.poll(placeOf).toEqual(before);

  // Copy and paste, duplicate, group, fold, note, delete.
  await page.keyboard.press('Control+c');
  await page.keyboard.press('Control+v');
  await expect(focused).toHaveAttribute('data-id', 'prepare-2');
  await page.keyboard.press('Control+d');
  await expect(focused).toHaveAttribute('data-id', 'prepare-3');
  await page.keyboard.press('Delete');
  await expect(nodeOf(page, 'prepare-3')).toHaveCount(0);
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Control+g');
  await expect(field(page, 'name').locator('input')).toBeFocused();
  await page.keyboard.press('Control+a');
  await page.keyboard.type('All of it');
  await expect(nodeOf(page, 'group').getByText('All of it')).toBeVisible();
  await execute(page, 'convect:pipeline-escape', {});
  await nodeOf(page, 'group').focus();
  await page.keyboard.press('f');
  await expect(nodeOf(page, 'train')).toHaveCount(0);
  await expect(nodeOf(page, 'group').getByText('3 nodes')).toBeVisible();
  await page.keyboard.press('n');
  await expect(nodeOf(page, 'note').locator('textarea')).toBeFocused();
  await page.keyboard.type('# Read me');
  await page.keyboard.press('Escape');
  await expect(nodeOf(page, 'note').locator('h1')).toContainText('Read me');

  // Enter shows the properties of the focused node; every node says what it is.
  await nodeOf(page, 'group').focus();
  await page.keyboard.press('f');
  await expect(nodeOf(page, 'train')).toHaveAttribute(
    'aria-label',
    'Notebook train, runs after prepare'
  );
  await nodeOf(page, 'train').focus();
  await page.keyboard.press('Enter');
  await expect(field(page, 'path').locator('input')).toHaveValue('train.ipynb');
  await page.keyboard.press('Control+s');
  await expect
    .poll(() => textOf(page, `${tmpPath}/untitled.pipeline`))
    .toContain('"after": [\n        "prepare"\n      ]');
});

test('notebooks chosen in the file browser become a pipeline in order', async ({
  page,
  tmpPath
}) => {
  for (const name of ['a', 'b', 'c']) {
    await upload(page, `${tmpPath}/${name}.ipynb`, REPORT);
  }
  await page.filebrowser.openDirectory(tmpPath);
  const fileNamed = (name: string) =>
    page.locator('.jp-DirListing-item', { hasText: `${name}.ipynb` });
  await fileNamed('a').click();
  await fileNamed('c').click({ modifiers: ['Shift'] });
  await fileNamed('b').click({ button: 'right' });
  await page.getByRole('menuitem', { name: 'New Pipeline from These 3 Files' }).click();
  await expect(nodeOf(page, 'c')).toBeVisible();
  await expect
    .poll(async () => {
      const { nodes, layout } = await documentOf(page);
      const order = ['a', 'b', 'c'].map(id => nodes[id].after);
      return [...order, layout.a[0] < layout.b[0]];
    })
    .toEqual([undefined, ['a'], ['b'], true]);

  // Several are edited together, as one step.
  await nodeOf(page, 'a').focus();
  await page.keyboard.press('Control+a');
  await execute(page, 'convect:pipeline-properties', {});
  await field(page, 'image').locator('input').fill('registry/one:1');
  await nodeOf(page, 'b').focus();
  await execute(page, 'convect:pipeline-properties', { of: 'node' });
  await expect(field(page, 'image').locator('input')).toHaveValue('registry/one:1');
  const images = async () =>
    Object.values((await documentOf(page)).nodes).map(node => node.image);
  await expect.poll(images).toEqual(Array(3).fill('registry/one:1'));
  await nodeOf(page, 'a').click({ position: { x: 60, y: 20 } });
  await field(page, 'image').locator('input').fill('registry/other:2');
  await nodeOf(page, 'a').focus();
  await page.keyboard.press('Control+a');
  await expect(field(page, 'image').getByText('several values')).toBeVisible();
  await page.keyboard.press('Control+z');
  await page.keyboard.press('Control+z');
  await expect.poll(images).toEqual([undefined, undefined, undefined]);
  await execute(page, 'convect:pipeline-properties', {});

  // The picture has everything that is on the canvas.
  for (const format of ['svg', 'png']) {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      execute(page, 'convect:pipeline-export-picture', { format })
    ]);
    expect(download.suggestedFilename()).toMatch(new RegExp(`\\.${format}$`));
    const content = fs.readFileSync(await download.path());
    if (format === 'svg') {
      expect(content.toString()).toContain('>c.ipynb</text>');
    } else {
      expect(content.subarray(1, 4).toString()).toBe('PNG');
      expect(content.length).toBeGreaterThan(2000);
    }
  }

  // A file that is renamed is followed, when that is wanted.
  await page.evaluate(
    ([from, to]) => window.jupyterapp.serviceManager.contents.rename(from, to),
    [`${tmpPath}/b.ipynb`, `${tmpPath}/better.ipynb`]
  );
  await page.getByRole('button', { name: 'Update the pipeline' }).click();
  await expect(nodeOf(page, 'b').getByText('better.ipynb')).toBeVisible();

  // A file that is missing can be made.
  await page.evaluate(
    path => window.jupyterapp.serviceManager.contents.delete(path),
    `${tmpPath}/a.ipynb`
  );
  await expect(nodeOf(page, 'a').locator('.jp-mod-missing')).toBeVisible();
  await nodeOf(page, 'a').click({ button: 'right', position: { x: 60, y: 20 } });
  await page.getByRole('menuitem', { name: 'Open File' }).click();
  await page.getByRole('button', { name: 'Make a new one' }).click();
  await expect(page.locator('.jp-NotebookPanel:visible')).toBeVisible();
});
