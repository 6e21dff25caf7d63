import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { boxOf } from './editor';
import { expect, frontPage, notebook, openFile, test, upload } from './helpers';

test.use({ viewport: { width: 1400, height: 900 } });

test.afterEach('leave nothing behind', async ({ page, baseURL }) => {
  const api = `${baseURL}/jupyterlab-convect/api/v1`;
  const { runs } = await (await page.request.get(`${api}/runs`)).json();
  const { catalogs } = await (await page.request.get(`${api}/catalogs`)).json();
  for (const { id } of runs) {
    await page.request.delete(`${api}/runs/${id}`);
  }
  for (const { id, kind } of catalogs) {
    if (kind !== 'shipped') {
      await page.request.delete(`${api}/catalogs/${id}`);
    }
  }
});

const COUNT_WORDS = `
name: Count words
description: Counts the words of a text.
inputs:
- {name: text, type: String, description: What to count in.}
outputs:
- {name: count, type: Integer}
implementation:
  container:
    image: python:3.12-slim
    command:
    - python3
    - -c
    - |
      import sys
      text, path = sys.argv[1:]
      with open(path, "w") as file:
          file.write(str(len(text.split())))
    args: [{inputValue: text}, {outputPath: count}]
`;

const BROKEN = `
name: Broken
implementation:
  container:
    image: python
    args: [{inputValue: nowhere}]
`;

/** Counts the words of a text, and then those of the number. */
function countTwice(address: string): string {
  const componentRef = { url: `${address}/count.yaml` };
  return JSON.stringify({
    name: 'Count twice',
    inputs: [{ name: 'text', type: 'String' }],
    outputs: [{ name: 'count', type: 'Integer' }],
    implementation: {
      graph: {
        tasks: {
          Once: {
            componentRef,
            arguments: { text: { graphInput: { inputName: 'text' } } }
          },
          Again: {
            componentRef,
            arguments: {
              text: { taskOutput: { taskId: 'Once', outputName: 'count' } }
            }
          }
        },
        outputValues: {
          count: { taskOutput: { taskId: 'Again', outputName: 'count' } }
        }
      }
    }
  });
}

/** Serves texts at 127.0.0.1, by their path, while `work` is done. */
async function serve(
  texts: { [path: string]: string },
  work: (address: string) => Promise<void>
): Promise<void> {
  const server = createServer((request, response) => {
    const text = texts[request.url ?? ''];
    response.writeHead(text === undefined ? 404 : 200, {
      'Content-Type': 'text/yaml'
    });
    response.end(text);
  });
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  } finally {
    server.close();
  }
}

async function showComponents(page: IJupyterLabPageFixture): Promise<Locator> {
  await page.sidebar.openTab('jp-convect-components');
  const panel = page.locator('#jp-convect-components');
  await expect(panel.getByRole('treeitem', { name: /Split CSV/ })).toBeVisible();
  return panel;
}

async function newUrlCatalog(
  page: IJupyterLabPageFixture,
  panel: Locator,
  values: { [label: string]: string }
): Promise<void> {
  await panel.getByRole('button', { name: 'New component catalog' }).click();
  await page
    .getByRole('menuitem', { name: 'New URL Component Catalog' })
    .click();
  const dialog = page.getByRole('dialog');
  await expect(dialog.getByText('Configuration')).toBeVisible();
  // The dialog gives the keyboard to its first field once it is drawn.
  await expect(dialog.getByLabel('Name')).toBeFocused();
  for (const [label, value] of Object.entries(values)) {
    await dialog.getByLabel(label).pressSequentially(value);
  }
  // A part in which somebody writes stays open, also when nothing is left in it.
  await dialog.getByText('Dead addresses').click();
  await dialog.getByLabel('Read instead').fill('a = b');
  await dialog.getByLabel('Read instead').fill('');
  await expect(dialog.getByLabel('Read instead')).toBeFocused();
  await dialog.getByRole('button', { name: 'Import' }).click();
  await dialog.waitFor({ state: 'detached' });
}

async function drag(
  page: IJupyterLabPageFixture,
  from: Locator,
  to: { x: number; y: number }
): Promise<void> {
  await from.hover();
  await page.mouse.down();
  const image = page.locator('.jp-Convect-dragImage');
  await expect(async () => {
    await page.mouse.move(to.x, to.y, { steps: 5 });
    await expect(image).toBeVisible({ timeout: 500 });
  }).toPass();
  await page.mouse.move(to.x + 5, to.y + 5, { steps: 3 });
  await page.mouse.up();
}

test('a component is imported by its address, wired to a notebook and run', async ({
  page,
  tmpPath
}) => {
  await upload(
    page,
    `${tmpPath}/report.ipynb`,
    notebook(
      { source: 'words = 0', tags: ['parameters'] },
      'print(f"The text has {words} words.")'
    )
  );
  await upload(
    page,
    `${tmpPath}/words.pipeline`,
    JSON.stringify({
      convect: 1,
      name: 'words',
      nodes: { report: { kind: 'notebook', path: 'report.ipynb' } },
      layout: { report: [360, 0] }
    })
  );
  await page.filebrowser.open(`${tmpPath}/words.pipeline`);
  const panel = await showComponents(page);

  const texts: { [path: string]: string } = {
    '/count.yaml': COUNT_WORDS,
    '/broken.yaml': BROKEN
  };
  await serve(texts, async address => {
    texts['/twice.yaml'] = countTwice(address);
    await newUrlCatalog(page, panel, {
      Name: 'Words',
      URLs: `${address}/count.yaml\n${address}/broken.yaml\n${address}/twice.yaml`,
      Categories: 'Text'
    });
    const catalog = panel.locator('[data-catalog="words"]').last();
    await expect(catalog).toContainText('2 components');
    await catalog.getByRole('button', { name: '1 error' }).click();
    const preview = panel.getByRole('article');
    await expect(preview).toContainText('broken.yaml');
    await expect(preview).toContainText('nowhere');
    await expect(preview.getByText('Line')).toBeVisible();
  });

  // The address is gone from here on; what was imported is not.
  const editor = page.locator('.jp-Convect-editor:visible');
  const report = editor.locator('.react-flow__node[data-id="report"]');
  await expect(report.getByText('words')).toBeVisible();

  await panel.getByRole('searchbox').fill('count words');
  const row = panel.getByRole('treeitem', { name: /Count words/ });
  await expect(row).toHaveAttribute('aria-selected', 'true');
  const place = await boxOf(report);
  await drag(page, row, { x: place.x - 260, y: place.y - 120 });
  const count = editor.locator('.react-flow__node[data-id="Count-words"]');
  await expect(count.getByText('text')).toBeVisible();

  await count.click();
  await page.keyboard.press('Enter');
  const text = editor.getByRole('textbox', { name: /^text/ });
  await text.fill('one two three');
  await text.press('Tab');
  await count
    .locator('.react-flow__handle-right[data-handleid*="count"]')
    .dragTo(report.locator('.react-flow__handle-left[data-handleid*="words"]'));
  await expect(editor.locator('.react-flow__edge')).toHaveCount(1);

  // A graph is one node that unfolds, by keyboard too, and folds again.
  await panel.getByRole('searchbox').fill('count twice');
  await expect(
    panel.getByRole('treeitem', { name: /Count twice/, selected: true })
  ).toBeVisible();
  await page.keyboard.press('Enter');
  const nodeOf = (id: string) =>
    editor.locator(`.react-flow__node[data-id="${id}"]`);
  const twice = nodeOf('Count-twice');
  await expect(twice.getByText('2 tasks')).toBeVisible();
  await text.fill('four words are here');
  await text.press('Tab');
  await twice.focus();
  await page.keyboard.press('f');
  await expect(nodeOf('Count-twice.again').getByText('count')).toBeVisible();
  await page.keyboard.press('f');
  await expect(nodeOf('Count-twice.again')).toHaveCount(0);
  await twice.getByRole('button', { name: 'Unfold' }).click();

  await page.getByRole('button', { name: 'Run Pipeline' }).click();
  // What has not been approved is read and approved where one asks for the run.
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: 'Read what it runs' }).first().click();
  await expect(dialog).toContainText('text.split()');
  await dialog.getByRole('button', { name: 'Approve' }).click();
  await expect(dialog).not.toContainText('has not been approved');
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  const [once, again] = [nodeOf('Count-twice.once'), nodeOf('Count-twice.again')];
  for (const node of [count, report, twice, once, again]) {
    await expect(node.getByRole('img', { name: 'Succeeded' })).toBeVisible();
  }
  await report.getByRole('img', { name: 'Succeeded' }).click();
  const run = frontPage(page);
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText('The text has 3 words.')).toBeVisible();
});

test('a component is found and added by keyboard alone, and its update is taken by choice', async ({
  page,
  tmpPath
}) => {
  const texts = { '/count.yaml': COUNT_WORDS };
  await serve(texts, async address => {
    const panel = await showComponents(page);
    await newUrlCatalog(page, panel, {
      Name: 'Changing',
      URLs: `${address}/count.yaml`
    });
    const catalog = panel.locator('.jp-Convect-catalog').filter({
      hasText: 'Changing'
    });
    await expect(catalog).toContainText('1 component');

    await panel.getByRole('searchbox').fill('what it must be');
    await expect(panel).toContainText('No component matches');
    await panel.getByRole('searchbox').fill('sha256');
    await expect(
      panel.getByRole('treeitem', { name: /Download file/ })
    ).toBeVisible();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('Enter');
    const node = page.locator('.react-flow__node:visible');
    await expect(node.locator('.jp-Convect-cardName')).toHaveText('Download file');

    texts['/count.yaml'] = COUNT_WORDS.replace('of a text', 'of any text');
    await catalog.getByRole('button', { name: 'Refresh Changing' }).click();
    await catalog.getByRole('button', { name: '1 update' }).click();
    const dialog = page.getByRole('dialog');
    await expect(dialog.locator('ins')).toContainText('of any text');
    await dialog.getByRole('button', { name: 'Take what is marked' }).click();
    await expect(
      catalog.getByRole('button', { name: '1 update' })
    ).toHaveCount(0);
    await panel.getByRole('searchbox').fill('any text');
    await expect(
      panel.getByRole('treeitem', { name: /Count words/ })
    ).toBeVisible();

    // A pipeline that lacks the definition of its component can fetch it.
    await upload(
      page,
      `${tmpPath}/lost.pipeline`,
      JSON.stringify({
        convect: 1,
        nodes: {
          lost: {
            kind: 'component',
            component: `sha256:${'0'.repeat(64)}`,
            source: `${address}/count.yaml`
          }
        }
      })
    );
    await openFile(page, `${tmpPath}/lost.pipeline`);
    const lost = page.locator('.react-flow__node[data-id="lost"]:visible');
    await expect(lost.getByText('Definition is missing')).toBeVisible();
    await lost.dblclick({ position: { x: 60, y: 20 } });
    const properties = page.locator('.jp-Convect-properties:visible');
    await expect(properties).toContainText(`${address}/count.yaml`);
    await properties.getByRole('button', { name: 'Fetch it' }).click();
    await expect(lost.getByText('text')).toBeVisible();
    await expect(lost.locator('.jp-Convect-portRequired')).toHaveText('*');

    await catalog.getByRole('button', { name: 'Remove Changing' }).click();
    await page
      .getByRole('dialog')
      .getByRole('button', { name: 'Remove' })
      .click();
    await expect(catalog).toHaveCount(0);
  });
});
