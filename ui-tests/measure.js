/**
 * Measures in a real browser, for `benchmarks/browser.py`. Takes one JSON object
 * with `address` and `parts`, prints one JSON object with the numbers.
 */
const { chromium } = require('@playwright/test');

const { address, token, parts } = JSON.parse(process.argv[2]);

/** The lengths of the frames, in milliseconds, while `work` goes on. */
async function frames(page, work) {
  await page.evaluate(() => {
    window.frameTimes = [];
    let last = performance.now();
    const note = now => {
      window.frameTimes.push(now - last);
      last = now;
      window.frameRequest = requestAnimationFrame(note);
    };
    window.frameRequest = requestAnimationFrame(note);
  });
  await work();
  return page.evaluate(() => {
    cancelAnimationFrame(window.frameRequest);
    return window.frameTimes.slice(1);
  });
}

function execute(page, command, args = {}) {
  return page.evaluate(
    async ([command, args]) => {
      await window.jupyterapp.commands.execute(command, args);
    },
    [command, args]
  );
}

async function newestRun() {
  const answer = await fetch('/jupyterlab-convect/api/v1/runs?limit=1');
  return (await answer.json()).runs[0]?.id;
}

const measures = {
  /** From opening the panel to the first runs, and how it scrolls. */
  async panel(page) {
    const began = Date.now();
    await execute(page, 'convect:show-runs');
    await page.locator('.jp-ConvectRuns-row.jp-mod-run').first().waitFor();
    const shown = Date.now() - began;
    const list = page.locator('.jp-ConvectRuns-list');
    const times = await frames(page, async () => {
      await list.hover();
      for (let turn = 0; turn < 120; turn += 1) {
        await page.mouse.wheel(0, 700);
        await page.waitForTimeout(16);
      }
    });
    const jump = Date.now();
    await list.evaluate(element => {
      element.scrollTop = element.scrollHeight / 2;
    });
    await page.waitForFunction(
      () => !document.querySelector('.jp-ConvectRuns-row.jp-mod-loading')
    );
    return { shown, frames: times, jumped: Date.now() - jump };
  },

  /** From the click on Run to the first cell that has begun, as the page of the run shows it. */
  async firstCell(page) {
    const times = [];
    for (let turn = 0; turn < 5; turn += 1) {
      void execute(page, 'convect:run-as-pipeline', { path: 'first.ipynb' });
      const dialog = page.locator('.jp-ConvectRuns-dialog');
      const run = dialog.getByRole('button', { name: 'Run', exact: true });
      await dialog.getByText('The source is not changed').waitFor();
      const before = await page.evaluate(newestRun);
      const clicked = Date.now() / 1000;
      await run.click();
      const started = await page.evaluate(async before => {
        const root = '/jupyterlab-convect/api/v1/runs';
        for (;;) {
          const { runs } = await (await fetch(`${root}?limit=1`)).json();
          if (runs[0]?.id !== before) {
            const place = `${root}/${runs[0].id}/steps/first/1/events`;
            const answer = await fetch(place);
            const { events } = answer.ok ? await answer.json() : { events: [] };
            const cell = events.find(({ type }) => type === 'cell.start');
            if (cell) {
              return cell.time;
            }
          }
          await new Promise(resolve => setTimeout(resolve, 5));
        }
      }, before);
      times.push((started - clicked) * 1000);
    }
    return { times };
  },

  /** A large pipeline in the editor: until it is drawn, and how it moves. */
  async editor(page) {
    const began = Date.now();
    await execute(page, 'docmanager:open', { path: 'large.pipeline' });
    await page.locator('.react-flow__node').first().waitFor();
    const opened = Date.now() - began;
    const pane = page.locator('.react-flow__pane').first();
    const box = await pane.boundingBox();
    const times = await frames(page, async () => {
      await page.mouse.move(box.x + 300, box.y + 300);
      for (let turn = 0; turn < 90; turn += 1) {
        await page.mouse.wheel(turn % 2 ? 30 : 25, 20);
        await page.waitForTimeout(16);
      }
    });
    return { opened, frames: times };
  }
};

(async () => {
  const browser = await chromium.launch({
    executablePath:
      process.env.PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage']
  });
  const results = {};
  try {
    for (const part of parts) {
      const page = await browser.newPage({
        viewport: { width: 1400, height: 900 }
      });
      await page.goto(`${address}/lab?reset&token=${token}`);
      await page.waitForFunction(() => window.jupyterapp?.shell, null, {
        timeout: 120000
      });
      await page.evaluate(() => window.jupyterapp.restored.then(() => 0));
      await page.waitForTimeout(1000);
      results[part] = await measures[part](page);
      await page.close();
    }
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify(results));
})();
