import type { Locator, Page } from '@playwright/test';

import { expect, notebook } from './helpers';

/** The three notebooks of most journeys. */
export const PREPARE = notebook(
  { source: 'rows: int = 10  # how many rows to make', tags: ['parameters'] },
  'made = rows * 2',
  { source: 'total = made', tags: ['outputs'] }
);
export const TRAIN = notebook(
  { source: 'total = 0\nrate = 0.5  # how fast to learn', tags: ['parameters'] },
  'print("trained on", total, "at", rate)'
);
export const REPORT = notebook('print("all done")');

export interface IDocument {
  nodes: {
    [id: string]: {
      after?: string[];
      image?: string;
      parameters?: object;
      resources?: { memory?: string };
    };
  };
  layout: { [id: string]: number[] };
}

interface IPipelineTab {
  context: { model: { toJSON(): IDocument } };
}

/** The editor that is in front. */
export function editorOf(page: Page): Locator {
  return page.locator('.jp-Convect-editor:visible');
}

export function nodeOf(page: Page, id: string): Locator {
  return editorOf(page).locator(`.react-flow__node[data-id="${id}"]`);
}

/** The name of a node, as its card shows it. */
export function nameOf(page: Page, id: string): Locator {
  return nodeOf(page, id).locator('.jp-Convect-cardName');
}

export function handleOf(page: Page, id: string, end: string): Locator {
  return nodeOf(page, id).locator(`[data-handleid="${end}"]`);
}

export function field(page: Page, path: string): Locator {
  return editorOf(page).locator(`.jp-Convect-field[data-path="${path}"]`);
}

/** The document as it would be written. */
export async function documentOf(page: Page): Promise<IDocument> {
  return page.evaluate(() => {
    const { context } = window.jupyterapp.shell
      .currentWidget as unknown as IPipelineTab;
    return context.model.toJSON();
  });
}

export async function textOf(page: Page, path: string): Promise<string> {
  return page.evaluate(async path => {
    const { contents } = window.jupyterapp.serviceManager;
    const file = await contents.get(path, {
      type: 'file',
      format: 'text',
      content: true
    });
    return file.content as string;
  }, path);
}

export interface IScreenBox {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Where something is on the screen, once it has come to rest. */
export async function boxOf(what: Locator): Promise<IScreenBox> {
  let box: IScreenBox | null = null;
  await expect
    .poll(
      async () => {
        const before = box;
        box = await what.boundingBox();
        return box !== null && JSON.stringify(box) === JSON.stringify(before);
      },
      { intervals: [50] }
    )
    .toBe(true);
  return box!;
}

export async function centerOf(what: Locator): Promise<{ x: number; y: number }> {
  const box = await boxOf(what);
  return { x: box.x + box.width / 2, y: box.y + box.height / 2 };
}

/** Drag with the mouse, in steps that a drag is noticed by. */
export async function drag(
  page: Page,
  from: { x: number; y: number },
  to: { x: number; y: number },
  before?: () => Promise<void>
): Promise<void> {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move(from.x + 12, from.y + 6, { steps: 3 });
  await page.mouse.move(to.x, to.y, { steps: 10 });
  await before?.();
  await page.mouse.up();
}

export async function connect(
  page: Page,
  from: Locator,
  to: Locator,
  before?: () => Promise<void>
): Promise<void> {
  await drag(page, await centerOf(from), await centerOf(to), before);
}
