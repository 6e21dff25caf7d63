import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import { expect, test as base } from '@jupyterlab/galata';
import type { Locator, Page } from '@playwright/test';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';

export { expect };

/** Galata's test, with the patience that a busy machine needs to start JupyterLab. */
export const test = base.extend({
  autoGoto: false,
  page: async ({ page }, use) => {
    page.waitForCondition = async (condition, timeout = 180000) => {
      await expect.poll(condition, { timeout }).toBe(true);
    };
    await closeConnectionErrors(page);
    await forgetRuns(page);
    await page.goto();
    await use(page);
  }
});

/**
 * Close what JupyterLab says over everything else when a request is lost: the
 * browser drops those under way whenever an interface of the machine comes or
 * goes, as when containers start beside the tests.
 */
export async function closeConnectionErrors(page: Page): Promise<void> {
  await page.addLocatorHandler(
    page.locator('.jp-Dialog', { hasText: 'Server Connection Error' }),
    dialog => dialog.getByRole('button', { name: 'Close' }).click()
  );
}

export interface ICell {
  source: string;
  tags?: string[];
}

/** A notebook of code cells, as text. */
export function notebook(...cells: (string | ICell)[]): string {
  return JSON.stringify({
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {
      kernelspec: {
        name: 'python3',
        display_name: 'Python 3 (ipykernel)',
        language: 'python'
      },
      language_info: { name: 'python' }
    },
    cells: cells.map((cell, index) => {
      const { source, tags } =
        typeof cell === 'string' ? { source: cell, tags: [] } : cell;
      return {
        cell_type: 'code',
        id: `cell-${index}`,
        source,
        metadata: tags?.length ? { tags } : {},
        execution_count: null,
        outputs: []
      };
    })
  });
}

/** A training job in which a line is out of place and an argument is no text. */
export function pytorchJob(name: string, image: string, argument: string): string {
  return `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata:
  name: ${name}
spec:
  runPolicy: {cleanPodPolicy: Running}
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
        image: ${image}
              command: [python, train.py]
              args: [${argument}, 10]
    Worker:
      replicas: 1 # one for now
      restartPolicy: OnFailure
      template:
        spec:
          containers:
            - name: pytorch
              image: ${image}
`;
}

export async function upload(
  page: IJupyterLabPageFixture,
  path: string,
  content: string
): Promise<void> {
  await page.contents.uploadContent(content, 'text', path);
}

export async function openFile(
  page: IJupyterLabPageFixture,
  path: string
): Promise<void> {
  await execute(page, 'docmanager:open', { path });
}

/** Execute a command of JupyterLab. */
export async function execute(
  page: IJupyterLabPageFixture,
  command: string,
  args: Record<string, string | string[]>
): Promise<void> {
  await page.evaluate(
    async ([command, args]) => {
      await window.jupyterapp.commands.execute(command, args);
    },
    [command, args] as const
  );
}

/** Open a notebook and press the button; the form is ready when this returns. */
export async function runAsPipeline(
  page: IJupyterLabPageFixture,
  path: string
): Promise<Locator> {
  await openFile(page, path);
  const dialog = page.locator('.jp-Convect-runDialog');
  await page
    .locator('.jp-NotebookPanel:visible')
    .getByText('Run as pipeline')
    .click();
  await dialog.getByText('One run on this machine').waitFor();
  return dialog;
}

/** Press Run and wait until the form is gone. */
export async function pressRun(dialog: Locator): Promise<void> {
  await dialog.getByRole('button', { name: 'Run', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
}

export async function showRuns(
  page: IJupyterLabPageFixture
): Promise<Locator> {
  await page.sidebar.openTab('jp-convect-runs');
  return page.locator('#jp-convect-runs');
}

/** Stop and delete what other tests have left. */
async function forgetRuns(page: Page): Promise<void> {
  const runs = '/jupyterlab-convect/api/v1/runs';
  const answer = await page.request.get(`${runs}?limit=500`);
  for (const { id } of (await answer.json()).runs as { id: string }[]) {
    await expect
      .poll(async () => {
        const deleted = await page.request.delete(`${runs}/${id}`);
        if (deleted.status() === 409) {
          await page.request.post(`${runs}/${id}/stop`, { data: {} });
        }
        return deleted.ok() || deleted.status() === 404;
      })
      .toBe(true);
  }
}

/** A port of 127.0.0.1 that nobody listens on. */
export function freePort(): Promise<string> {
  return new Promise(resolve => {
    const server = createServer();
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(String(port)));
    });
  });
}

/** Wait until JupyterLab knows all of its commands and has opened what was open before. */
export async function isRestored(page: Page): Promise<void> {
  // A second tab goes on to a workspace of its own while it starts.
  await expect(() =>
    page.evaluate(async () => {
      await window.jupyterapp.restored;
    })
  ).toPass({ timeout: 180000 });
}

/** Wait until a server that was started answers. */
export async function answers(url: string): Promise<void> {
  await expect
    .poll(() => fetch(`${url}/api`).then(answer => answer.ok, () => false), {
      timeout: 120000
    })
    .toBe(true);
}

/** The page of a run or a sweep that is in front. */
export function frontPage(page: IJupyterLabPageFixture): Locator {
  return page.locator('.jp-Convect-page:visible');
}

/** JupyterLab has kept a layout in which there is a page of this name. */
export async function savedLayout(page: Page, name: string): Promise<void> {
  // What was only asked for may be lost with the page that asked.
  await page.waitForResponse(answer => {
    const request = answer.request();
    return (
      request.method() === 'PUT' &&
      request.url().includes('/api/workspaces') &&
      JSON.stringify(
        (request.postDataJSON() as { data?: Record<string, unknown> })?.data?.[
          'layout-restorer:data'
        ] ?? ''
      ).includes(name)
    );
  });
}

/** Have the page speak Chinese. */
export async function speakChinese(page: IJupyterLabPageFixture): Promise<void> {
  await page.menu.clickMenuItem(
    'Settings>Language>Chinese (Simplified, China) - 中文 (简体, 中国)'
  );
  await page.getByRole('button', { name: 'Change and reload' }).click();
  await page.locator('[lang^="zh"]').first().waitFor({ state: 'attached' });
  await page.goto();
}
