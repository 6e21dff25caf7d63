import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Page } from '@playwright/test';

import { boxOf, drag, editorOf, nodeOf, PREPARE } from './editor';
import { execute, expect, openFile, test, upload } from './helpers';

test.use({ viewport: { width: 1440, height: 900 } });

/** A pipeline of notebooks in columns, each after the one on its left. Gives its connections. */
async function makePipeline(
  page: IJupyterLabPageFixture,
  path: string,
  count: number,
  rows = 25
): Promise<number> {
  const nodes: { [id: string]: object } = {};
  const layout: { [id: string]: number[] } = {};
  for (let index = 0; index < count; index++) {
    nodes[`n${index}`] = {
      kind: 'notebook',
      path: 'step.ipynb',
      ...(index >= rows ? { after: [`n${index - rows}`] } : {})
    };
    layout[`n${index}`] = [Math.floor(index / rows) * 300, (index % rows) * 110];
  }
  await upload(page, path, JSON.stringify({ convect: 1, nodes, layout }));
  return count - rows;
}

/** The lines that begin and end at a box on the screen, thick enough to be seen. */
function goodLines(page: Page): Promise<number> {
  return editorOf(page).evaluate(editor => {
    const canvas = editor.querySelector('.react-flow')!.getBoundingClientRect();
    const boxes = [...editor.querySelectorAll('.react-flow__node-step')].map(node =>
      node.getBoundingClientRect()
    );
    const touches = ({ x, y }: DOMPoint) =>
      boxes.some(
        box =>
          x >= box.left - 8 && x <= box.right + 8 && y >= box.top - 4 && y <= box.bottom + 4
      );
    const isInside = ({ x, y }: DOMPoint) =>
      x >= canvas.left && x <= canvas.right && y >= canvas.top && y <= canvas.bottom;
    return [...editor.querySelectorAll<SVGPathElement>('.react-flow__edge-path')].filter(
      path => {
        const matrix = path.getScreenCTM()!;
        const ends = [0, path.getTotalLength()].map(at =>
          path.getPointAtLength(at).matrixTransform(matrix)
        );
        const width = Number.parseFloat(getComputedStyle(path).strokeWidth) * matrix.a;
        return width > 0.35 && ends.every(end => isInside(end) && touches(end));
      }
    ).length;
  });
}

/** The boxes that show a name. */
function shownNames(page: Page): Promise<number> {
  return editorOf(page).evaluate(
    editor =>
      [
        ...editor.querySelectorAll('.jp-Convect-farName, .jp-Convect-cardName')
      ].filter(name => name.checkVisibility() && name.textContent).length
  );
}

for (const viewport of [
  { width: 1024, height: 700 },
  { width: 1440, height: 900 }
]) {
  test(`names and connections are seen at ${viewport.width} × ${viewport.height}, however many`, async ({
    page,
    tmpPath
  }) => {
    await page.setViewportSize(viewport);
    await upload(page, `${tmpPath}/step.ipynb`, PREPARE);
    for (const [count, rows] of [
      [12, 1],
      [60, 6],
      [150, 15],
      [300, 25],
      [1000, 25]
    ]) {
      const path = `${tmpPath}/nodes-${count}.pipeline`;
      const edges = await makePipeline(page, path, count, rows);
      await openFile(page, path);
      await expect(nodeOf(page, 'n0')).toBeVisible();
      await execute(page, 'convect:pipeline-zoom', { step: 'fit' });
      await isStill(page);
      await expect(editorOf(page).locator('.react-flow__node')).toHaveCount(count);
      await expect.poll(() => goodLines(page)).toBe(edges);
      await expect.poll(() => shownNames(page)).toBe(count);
      // Where it can be read again, lines still lead to their nodes.
      await execute(page, 'convect:pipeline-zoom', { step: 'reset' });
      await isStill(page);
      await expect.poll(() => goodLines(page)).toBeGreaterThan(0);
      // The arrow is one of this tab: those of hidden tabs are not drawn.
      const line = editorOf(page).locator('.react-flow__edge-path').first();
      const arrow = (await line.getAttribute('marker-end'))!.slice("url('#".length, -2);
      const marker = `marker[id="${arrow}"]`;
      await expect(editorOf(page).locator(marker)).toHaveCount(1);
      await expect(page.locator(marker)).toHaveCount(1);
    }
  });
}

test('a thousand nodes open and move smoothly', async ({ page, tmpPath }) => {
  const path = `${tmpPath}/big.pipeline`;
  await upload(page, `${tmpPath}/step.ipynb`, PREPARE);
  await makePipeline(page, path, 1000);
  // Once small, so that loading the canvas itself is not counted.
  await upload(page, `${tmpPath}/small.pipeline`, '{"convect": 1, "nodes": {}}');
  await openFile(page, `${tmpPath}/small.pipeline`);
  await expect(editorOf(page).getByText('Drag notebooks')).toBeVisible();

  const began = Date.now();
  await openFile(page, path);
  await expect(nodeOf(page, 'n0')).toBeVisible();
  console.log(`a thousand nodes: open in ${Date.now() - began} ms`);

  const box = await boxOf(editorOf(page).locator('.react-flow__pane'));
  const pan = () =>
    drag(page, { x: box.x + 700, y: box.y + 10 }, { x: box.x + 200, y: box.y + 10 });
  for (const step of ['reset', 'fit']) {
    await execute(page, 'convect:pipeline-zoom', { step });
    await isStill(page);
    if (step === 'fit') {
      await expect(editorOf(page).locator('.react-flow__node')).toHaveCount(
        1000
      );
    }
    const [times] = await Promise.all([frameTimes(page), pan()]);
    const median = times[Math.floor(times.length / 2)];
    console.log(
      `a thousand nodes: median frame ${median.toFixed(1)} ms, longest ${times[times.length - 1].toFixed(1)} ms (${step})`
    );
  }
});

/** Wait until the canvas has come to rest where it was told to go. */
async function isStill(page: Page): Promise<void> {
  const canvas = editorOf(page).locator('.react-flow__viewport');
  const place = () => canvas.getAttribute('style');
  await expect
    .poll(async () => {
      const before = await place();
      await frameTimes(page, 10);
      return (await place()) === before;
    })
    .toBe(true);
}

/** How long frames took for a while, sorted. */
function frameTimes(page: Page, count = 60): Promise<number[]> {
  return page.evaluate(
    count =>
      new Promise<number[]>(resolve => {
        const times: number[] = [];
        let last = performance.now();
        const tick = (now: number) => {
          times.push(now - last);
          last = now;
          if (times.length < count) {
            requestAnimationFrame(tick);
          } else {
            resolve(times.sort((a, b) => a - b));
          }
        };
        requestAnimationFrame(tick);
      }),
    count
  );
}
