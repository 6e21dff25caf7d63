import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';

import { boxOf, centerOf, documentOf, drag, editorOf, field, handleOf, connect, nodeOf } from './editor';
import { expect, frontPage, notebook, openFile, test, upload } from './helpers';

test.use({ viewport: { width: 1400, height: 900 } });

const PREPARE = notebook({
  source: 'regions = ["eu", "us", "cn"]\nauc = 0.9',
  tags: ['outputs']
});
const SCORE = notebook(
  { source: 'region = ""', tags: ['parameters'] },
  'print("scoring", region)\nassert region != "us", "no data"',
  { source: 'size = len(region)', tags: ['outputs'] }
);

/** Below each other, far from the edges at which the canvas moves, with nothing between them. */
const DOCUMENT = {
  convect: 1,
  nodes: {
    prepare: { kind: 'notebook', path: 'prepare.ipynb' },
    score: { kind: 'notebook', path: 'score.ipynb' },
    clean: { kind: 'command', command: ['echo', 'cleaned'] }
  },
  layout: { prepare: [0, 0], score: [40, 200], clean: [0, 420] }
};

async function start(page: IJupyterLabPageFixture, folder: string): Promise<void> {
  await upload(page, `${folder}/prepare.ipynb`, PREPARE);
  await upload(page, `${folder}/score.ipynb`, SCORE);
  const path = `${folder}/flow.pipeline`;
  await upload(page, path, JSON.stringify(DOCUMENT));
  await openFile(page, path);
  await expect(nodeOf(page, 'score').getByText('region')).toBeVisible();
}

function rule(page: IJupyterLabPageFixture, id: string, kind: string): Locator {
  return nodeOf(page, id).locator(`[data-rule="${kind}"]`);
}

interface IFlowNode {
  members?: string[];
  when?: string;
  for_each?: object;
  after?: string[];
  parameters?: object;
}

async function nodesOf(page: IJupyterLabPageFixture): Promise<{ [id: string]: IFlowNode }> {
  return (await documentOf(page)).nodes;
}

test('a loop with a condition is built by mouse, run, and its failing item opened', async ({
  page,
  tmpPath
}) => {
  await start(page, tmpPath);
  await nodeOf(page, 'score').click({ button: 'right', position: { x: 60, y: 20 } });
  await page.locator('.lm-Menu-item[data-command="convect:pipeline-group"]').click();
  await field(page, 'name').locator('input').fill('Regions');

  // The list is an output of what was connected with nothing yet.
  await field(page, 'for_each.name').locator('input').fill('region');
  await field(page, 'for_each.in').locator('select').selectOption('Expression');
  await field(page, 'for_each.in').getByRole('combobox').last().click();
  await field(page, 'for_each.in')
    .getByRole('option', { name: 'nodes.prepare.outputs.regions' })
    .click();
  const condition = field(page, 'when').getByRole('combobox');
  await condition.pressSequentially('auc');
  await field(page, 'when').getByRole('option', { name: 'nodes.prepare.outputs.auc' }).click();
  await condition.press('End');
  await condition.pressSequentially(' >= parameters.least');
  await expect(field(page, 'when').getByRole('alert')).toBeVisible();
  await condition.fill('nodes.prepare.outputs.auc >= 0.5');
  await expect(field(page, 'when').getByRole('alert')).toBeHidden();
  await expect(rule(page, 'group', 'when')).toHaveText('when auc >= 0.5');
  await expect(rule(page, 'group', 'for_each')).toHaveText('for each region');

  await nodeOf(page, 'score').click({ position: { x: 60, y: 20 } });
  await field(page, 'parameters.region')
    .getByLabel('Where region comes from')
    .selectOption('Item of a loop');
  await expect
    .poll(async () => (await nodesOf(page)).score.parameters)
    .toEqual({ region: '${{ each.region }}' });

  // Into the group, out of it again, and after it as a whole.
  const inside = await centerOf(nodeOf(page, 'score'));
  const clean = nodeOf(page, 'clean');
  const home = await centerOf(clean);
  const heightOf = async () => (await boxOf(nodeOf(page, 'group'))).height;
  const height = await heightOf();
  const grip = async () => {
    const box = await boxOf(clean);
    return { x: box.x + box.width / 2, y: box.y + 14 };
  };
  await drag(page, await grip(), { x: inside.x, y: inside.y + 20 });
  await expect.poll(async () => (await nodesOf(page)).group.members).toEqual(['score', 'clean']);
  await drag(page, await grip(), { x: home.x, y: home.y + 40 });
  await expect.poll(async () => (await nodesOf(page)).group.members).toEqual(['score']);
  await expect.poll(heightOf).toBe(height);
  await connect(page, handleOf(page, 'group', 'out'), clean);
  await expect.poll(async () => (await nodesOf(page)).clean.after).toEqual(['group']);
  await clean.click({ position: { x: 60, y: 20 } });
  await editorOf(page).getByRole('button', { name: 'When and how often' }).click();
  await field(page, 'run_if').locator('select').selectOption('always');
  await expect(rule(page, 'clean', 'run_if')).toHaveText('always');

  await page.getByRole('button', { name: 'Run Pipeline' }).click();
  const dialog = page.locator('.jp-Convect-runDialog');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await expect(rule(page, 'group', 'for_each')).toContainText('3 of 3');
  await expect(
    nodeOf(page, 'group').locator('.jp-Convect-groupHeader').getByRole('img', { name: 'Failed' })
  ).toBeVisible();
  await expect(clean.getByRole('img', { name: 'Succeeded' })).toBeVisible();
  await expect(nodeOf(page, 'group')).toHaveAccessibleName(/3 of 3 items done, 1 failed/);

  // What the condition would have been, now that there are values.
  await nodeOf(page, 'group').locator('.jp-Convect-groupName').click();
  await expect(field(page, 'when')).toContainText(
    'With the last run this would be true: auc was 0.9.'
  );

  await nodeOf(page, 'group').locator('.jp-Convect-groupHeader').getByRole('img').click();
  const run = frontPage(page);
  await expect(run.getByText('› Item 1: us › score')).toBeVisible();
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('scoring us')).toBeVisible();

  await run.getByRole('button', { name: 'All items' }).click();
  const items = run.getByRole('grid', { name: 'Items of the loop' }).locator('[data-item]');
  await expect(items).toHaveCount(3);
  await expect(items.first()).toContainText('AssertionError: no data');
  await expect(items.nth(2)).toContainText('cn');
  await run.getByRole('button', { name: 'Succeeded 2' }).click();
  await expect(items).toHaveCount(2);
  await items.first().click();
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('scoring eu')).toBeVisible();
});

/** Press Tab until it has the keyboard. */
async function tabTo(page: IJupyterLabPageFixture, what: Locator): Promise<void> {
  const isThere = () => what.evaluate(element => element === document.activeElement);
  for (let presses = 0; presses < 80 && !(await isThere()); presses++) {
    await page.keyboard.press('Tab');
  }
  await expect(what).toBeFocused();
}

test('a loop with a condition is built by keyboard, run, and its failing item opened', async ({
  page,
  tmpPath
}) => {
  await start(page, tmpPath);
  await nodeOf(page, 'score').focus();
  await page.keyboard.press('Control+g');
  await expect(field(page, 'name').locator('input')).toBeFocused();
  await page.keyboard.type('Regions');
  await tabTo(page, field(page, 'when').getByRole('combobox'));
  await page.keyboard.type('auc');
  await expect(page.getByRole('option', { name: /auc$/ })).toBeVisible();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.keyboard.type(' >= 0.5');
  await tabTo(page, field(page, 'for_each.name').locator('input'));
  await page.keyboard.type('region');
  await tabTo(page, field(page, 'for_each.in').locator('select'));
  await page.keyboard.press('ArrowDown');
  await tabTo(page, field(page, 'for_each.in').getByRole('combobox').last());
  await page.keyboard.type('regions');
  await expect(page.getByRole('option', { name: /regions$/ })).toBeVisible();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect.poll(() => nodesOf(page)).toMatchObject({
    group: {
      members: ['score'],
      when: '${{ nodes.prepare.outputs.auc >= 0.5 }}',
      for_each: { name: 'region', in: '${{ nodes.prepare.outputs.regions }}' }
    }
  });

  // The item reaches the notebook, and another node comes after the group as a whole.
  await nodeOf(page, 'score').focus();
  await page.keyboard.press('Enter');
  await tabTo(page, field(page, 'parameters.region').getByLabel('Where region comes from'));
  await page.keyboard.type('Item');
  await expect
    .poll(async () => (await nodesOf(page)).score.parameters)
    .toEqual({ region: '${{ each.region }}' });
  await nodeOf(page, 'group').focus();
  await page.keyboard.press('c');
  await nodeOf(page, 'clean').focus();
  await page.keyboard.press('Enter');
  await expect.poll(async () => (await nodesOf(page)).clean.after).toEqual(['group']);
  await page.keyboard.press('Enter');
  await tabTo(page, field(page, 'group').locator('select'));
  await page.keyboard.press('ArrowDown');
  await expect.poll(async () => (await nodesOf(page)).group.members).toEqual(['score', 'clean']);
  await page.keyboard.press('ArrowUp');
  await expect.poll(async () => (await nodesOf(page)).group.members).toEqual(['score']);

  await nodeOf(page, 'clean').focus();
  await page.keyboard.press('r');
  const dialog = page.locator('.jp-Convect-runDialog');
  // The button is there before it can be pressed.
  await dialog.getByText('One run on this machine').waitFor();
  await expect(dialog.locator(':focus')).toHaveCount(1);
  await tabTo(page, dialog.getByRole('button', { name: 'Run', exact: true }));
  await page.keyboard.press('Enter');
  const group = nodeOf(page, 'group');
  await expect(group).toHaveAccessibleName(/3 of 3 items done, 1 failed/);
  // It needed the loop, which failed.
  await expect(nodeOf(page, 'clean').getByRole('img', { name: 'Skipped' })).toBeVisible();
  await group.focus();
  await page.keyboard.press('s');
  const run = frontPage(page);
  await expect(run.getByText('› Item 1: us › score')).toBeVisible();
  await tabTo(page, run.getByRole('button', { name: 'All items' }));
  await page.keyboard.press('Enter');
  const grid = run.getByRole('grid', { name: 'Items of the loop' });
  await expect(grid.locator('[data-item]')).toHaveCount(3);
  await expect(grid).toBeFocused();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await expect(run.getByText('› Item 0: eu › score')).toBeVisible();
  await expect(run.getByRole('button', { name: 'All items' })).toBeFocused();
});
