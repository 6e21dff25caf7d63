import { editorOf, field, REPORT, textOf } from './editor';
import { execute, expect, openFile, test, upload } from './helpers';

test.use({ viewport: { width: 1400, height: 900 } });

test('a file changed outside is taken over or offered, never overwritten', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/x.pipeline`;
  const text = (name: string) =>
    `{\n  "convect": 1,\n  "name": "${name}",\n  "nodes": {}\n}\n`;
  await upload(page, path, text('first'));
  await openFile(page, path);
  await execute(page, 'convect:pipeline-properties', {});
  const name = field(page, 'name').locator('input');
  await expect(name).toHaveValue('first');
  await upload(page, path, text('second'));
  await expect(name).toHaveValue('second');

  await name.fill('mine');
  await upload(page, path, text('third'));
  await expect(editorOf(page).getByText('changed outside')).toBeVisible();
  await expect(name).toHaveValue('mine');
  expect(await textOf(page, path)).toBe(text('third'));
  await editorOf(page).getByRole('button', { name: 'Take over the file' }).click();
  await expect(name).toHaveValue('third');

  // The server going away loses nothing: what is written meanwhile is saved when it is back.
  await page.context().setOffline(true);
  await name.fill('written alone');
  await page.keyboard.press('Control+s');
  const dialog = page.locator('.jp-Dialog', { hasText: 'Save Error' });
  await dialog.getByRole('button').last().click();
  await expect(name).toHaveValue('written alone');
  await page.context().setOffline(false);
  await expect(async () => {
    for (const button of await page.locator('.jp-Dialog button').all()) {
      await button.click({ timeout: 1000 }).catch(() => undefined);
    }
    // One that fails waits for its dialog to be closed.
    void execute(page, 'docmanager:save', {}).catch(() => undefined);
    await expect
      .poll(() => textOf(page, path), { timeout: 5000 })
      .toBe(text('written alone'));
  }).toPass();
});

test('a broken file says where, and is left alone', async ({ page, tmpPath }) => {
  const path = `${tmpPath}/broken.pipeline`;
  const broken = '{\n  "convect": 1,\n  "nodes": {,}\n}\n';
  await upload(page, path, broken);
  await openFile(page, path);
  await expect(editorOf(page).getByText('cannot be shown as a pipeline')).toBeVisible();
  await expect(editorOf(page).getByText(/Line 3, column 13/)).toBeVisible();
  await page.keyboard.press('Control+s');
  // Jupyter empties a file before it writes it.
  await expect.poll(() => textOf(page, path)).toBe(broken);
  await editorOf(page).getByRole('button', { name: 'Open in the text editor' }).click();
  await expect(page.locator('.jp-FileEditor:visible')).toBeVisible();
  // Mended elsewhere, it opens.
  await upload(page, path, '{"convect": 1, "nodes": {}}');
  await openFile(page, path);
  await execute(page, 'docmanager:open', { path, factory: 'Pipeline Editor' });
  await expect(editorOf(page).getByText('Drag notebooks or scripts here')).toBeVisible();
});

const ELYRA = JSON.stringify({
  doc_type: 'pipeline',
  version: '3.0',
  id: 'elyra',
  primary_pipeline: 'primary',
  schemas: [],
  pipelines: [
    {
      id: 'primary',
      nodes: ['load', 'clean'].map((name, index) => ({
        id: `${name}-id`,
        type: 'execution_node',
        op: 'execute-notebook-node',
        app_data: {
          component_parameters: {
            filename: `${name}.ipynb`,
            runtime_image: 'registry/image:1',
            dependencies: [],
            outputs: [],
            env_vars: []
          },
          label: '',
          ui_data: { label: `${name}.ipynb`, x_pos: 100 + index * 300, y_pos: 100 }
        },
        inputs: [
          {
            id: 'inPort',
            app_data: { ui_data: { cardinality: { min: 0, max: -1 } } },
            ...(index === 1
              ? { links: [{ id: 'link', node_id_ref: 'load-id', port_id_ref: 'outPort' }] }
              : {})
          }
        ],
        outputs: [{ id: 'outPort', app_data: { ui_data: { cardinality: { min: 0, max: -1 } } } }]
      })),
      app_data: {
        ui_data: { comments: [] },
        version: 8,
        runtime_type: 'KUBEFLOW_PIPELINES',
        properties: { name: 'from-elyra', runtime: 'Kubeflow Pipelines' }
      },
      runtime_ref: ''
    }
  ]
});

test('an Elyra pipeline is opened, and its original is kept', async ({ page, tmpPath }) => {
  await upload(page, `${tmpPath}/load.ipynb`, REPORT);
  await upload(page, `${tmpPath}/clean.ipynb`, REPORT);
  const path = `${tmpPath}/old.pipeline`;
  await upload(page, path, ELYRA);
  await openFile(page, path);
  await expect(editorOf(page).getByText('This is an Elyra pipeline')).toBeVisible();
  await expect(editorOf(page).getByText('Its 2 nodes can be edited')).toBeVisible();
  expect(await textOf(page, path)).toBe(ELYRA);
  await editorOf(page).getByRole('button', { name: 'Open in this editor' }).click();
  await expect(editorOf(page).getByText('clean.ipynb')).toBeVisible();
  await page.keyboard.press('Control+s');
  await expect.poll(() => textOf(page, path)).toContain('"convect": 1');
  await expect.poll(() => textOf(page, `${tmpPath}/old.elyra.pipeline`)).toBe(ELYRA);
});

test('a part of the program that the network lost is loaded again', async ({
  page,
  tmpPath
}) => {
  const seen = new Set<string>();
  await page.route('**/jupyterlab-convect/static/*.js*', route => {
    const url = route.request().url();
    const isFirst = !seen.has(url);
    seen.add(url);
    return isFirst ? route.abort('connectionreset') : route.continue();
  });
  const path = `${tmpPath}/lost.pipeline`;
  await upload(
    page,
    path,
    JSON.stringify({
      convect: 1,
      nodes: { only: { kind: 'command', command: ['true'] } }
    })
  );
  await openFile(page, path);
  const editor = page.locator('.jp-Convect-editor:visible');
  await expect(editor.locator('.jp-Convect-card')).toHaveCount(1);
  expect(seen.size).toBeGreaterThan(0);
  await editor.locator('.jp-Convect-card').dblclick();
  await expect(editor.locator('.jp-Convect-properties')).toBeVisible();
});
