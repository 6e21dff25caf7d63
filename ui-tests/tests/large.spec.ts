import type { Page } from '@playwright/test';

import { drag, editorOf, nodeOf } from './editor';
import { execute, expect, openFile, test, upload } from './helpers';

test.use({ viewport: { width: 1400, height: 900 } });

test('a thousand nodes open and move smoothly', async ({ page, tmpPath }) => {
  const nodes: { [id: string]: object } = {};
  const layout: { [id: string]: number[] } = {};
  for (let index = 0; index < 1000; index++) {
    const [column, row] = [Math.floor(index / 25), index % 25];
    const id = `n${index}`;
    nodes[id] = {
      kind: 'command',
      command: ['echo', id],
      ...(column > 0 ? { after: [`n${index - 25}`] } : {})
    };
    layout[id] = [column * 300, row * 110];
  }
  const path = `${tmpPath}/big.pipeline`;
  await upload(page, path, JSON.stringify({ convect: 1, nodes, layout }));
  // Once small, so that loading the canvas itself is not counted.
  await upload(page, `${tmpPath}/small.pipeline`, '{"convect": 1, "nodes": {}}');
  await openFile(page, `${tmpPath}/small.pipeline`);
  await expect(editorOf(page).getByText('Drag notebooks')).toBeVisible();

  const began = Date.now();
  await openFile(page, path);
  await expect(nodeOf(page, 'n0')).toBeVisible();
  console.log(`a thousand nodes: open in ${Date.now() - began} ms`);

  const box = (await editorOf(page).locator('.react-flow__pane').boundingBox())!;
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
