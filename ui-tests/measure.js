/**
 * Measures in a real browser, for `benchmarks/browser.py`. Takes one JSON object
 * with `address` and `parts`, prints one JSON object with the numbers.
 */
const { readFileSync } = require('fs');
const https = require('https');

const { chromium } = require('@playwright/test');

const { address, token, parts, sizes, loop, ranks, cluster } = JSON.parse(
  process.argv[2]
);

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

/** Begin a run, or a sweep of so many points; its id. */
async function begin({ token, path, points }) {
  const request = { path };
  const space = { x: { from: 1, to: points, step: 1 } };
  const answer = await fetch(
    `/jupyterlab-convect/api/v1/${points ? 'sweeps' : 'runs'}`,
    {
      method: 'POST',
      headers: { Authorization: `token ${token}` },
      body: JSON.stringify(points ? { request, space, mode: 'grid' } : request)
    }
  );
  return (await answer.json()).id;
}

/** Milliseconds from the end of a run, as it stands on the disk, to the frame that shows it. */
async function painting(id) {
  const shown = () =>
    document.querySelector(`[data-run="${id}"] [data-state="succeeded"]`);
  while (!shown()) {
    await new Promise(requestAnimationFrame);
  }
  const seen = Date.now();
  const answer = await fetch(`/jupyterlab-convect/api/v1/runs/${id}?measured`);
  return seen - (await answer.json()).ended * 1000;
}

/** Until a sweep has ended. */
async function sweeping(id) {
  for (;;) {
    const answer = await fetch(
      `/jupyterlab-convect/api/v1/sweeps/${id}?measured`
    );
    const { state } = await answer.json();
    if (!['waiting', 'queued', 'starting', 'running'].includes(state)) {
      return;
    }
    await new Promise(resolve => setTimeout(resolve, 1000));
  }
}

/** The frames of a long list while it is scrolled, and how long a jump to its middle takes. */
async function scrolled(page, list, isLoaded) {
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
  await page.waitForFunction(isLoaded);
  return { frames: times, jumped: Date.now() - jump };
}

const measures = {
  /** From opening the panel to the first runs, and how it scrolls. */
  async panel(page) {
    const began = Date.now();
    await execute(page, 'convect:show-runs');
    await page.locator('.jp-Convect-row.jp-mod-run').first().waitFor();
    const shown = Date.now() - began;
    const list = page.locator('.jp-Convect-list');
    const isLoaded = () =>
      !document.querySelector('.jp-Convect-row.jp-mod-loading');
    return { shown, ...(await scrolled(page, list, isLoaded)) };
  },

  /** From opening the page of a long loop to its items, and how they scroll. */
  async items(page) {
    const began = Date.now();
    await execute(page, 'convect:open-run', { run: loop, step: 'loop' });
    const list = page.locator('.jp-Convect-items');
    await list.locator('[data-item]').first().waitFor();
    const shown = Date.now() - began;
    const isLoaded = () => {
      const rows = [
        ...document.querySelectorAll('.jp-Convect-items .jp-Convect-gridRow')
      ];
      return (
        rows.some(({ dataset }) => Number(dataset.item) > 4000) &&
        rows.every(({ dataset }) => dataset.item !== undefined)
      );
    };
    return { shown, ...(await scrolled(page, list, isLoaded)) };
  },

  /** From the click on the tab of the processes to all their tiles, and how they scroll. */
  async ranks(page) {
    await execute(page, 'convect:open-run', { run: ranks, step: 'train' });
    const tab = page.getByRole('tab', { name: 'Processes' });
    await tab.waitFor();
    const began = Date.now();
    await tab.click();
    const tiles = page.locator('.jp-Convect-tile');
    await tiles.nth(511).waitFor({ state: 'attached' });
    const shown = Date.now() - began;
    const isLoaded = () => true;
    const list = page.locator('.jp-Convect-tiles');
    return { shown, ...(await scrolled(page, list, isLoaded)) };
  },

  /** From the click on Run to the first cell that has begun, as the page of the run shows it. */
  async firstCell(page) {
    const times = [];
    for (let turn = 0; turn < 5; turn += 1) {
      void execute(page, 'convect:run-as-pipeline', { path: 'first.ipynb' });
      const dialog = page.locator('.jp-Convect-runDialog');
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

  /** What the browser asks while runs change, and how soon it shows that one has ended. */
  async live(page) {
    await execute(page, 'convect:show-runs');
    await page.evaluate(() => {
      window.changes = new Set();
      const { stream } = window.jupyterapp.serviceManager.events;
      stream.connect(
        (_, { run, seq }) => run && window.changes.add(`${run} ${seq}`)
      );
    });
    const asked = [];
    page.on('request', request => {
      const [, question] = request.url().split('/jupyterlab-convect/api/v1/');
      // What is asked for the measurement itself does not count.
      if (
        question &&
        request.method() === 'GET' &&
        !question.endsWith('?measured')
      ) {
        asked.push(question);
      }
    });
    const painted = [];
    for (let turn = 0; turn < 20; turn += 1) {
      // It goes on for a second, so that its page is there before its end.
      const id = await page.evaluate(begin, { token, path: 'second.ipynb' });
      await execute(page, 'convect:open-run', { run: id });
      painted.push(await page.evaluate(painting, id));
    }
    const aboutRuns = asked.filter(each => /^runs(\/[^/]+$|\?id=)/.test(each));
    const changes = await page.evaluate(() => window.changes.size);
    asked.length = 0;
    const began = Date.now();
    const sweep = await page.evaluate(begin, {
      token,
      path: 'first.ipynb',
      points: 300
    });
    await execute(page, 'convect:open-sweep', { sweep });
    await page.evaluate(sweeping, sweep);
    const seconds = (Date.now() - began) / 1000;
    return {
      painted,
      perChange: aboutRuns.length / changes,
      perSecond:
        asked.filter(each => each !== `sweeps/${sweep}?measured`).length /
        seconds
    };
  },

  /** From opening the page of a cluster to what is free there, and to each change of it. */
  async cluster(page) {
    // The first time, all pods have to be read.
    page.setDefaultTimeout(600000);
    const runtime = '.jp-Convect-runtime[data-runtime="kubernetes"]';
    const gpus = page.locator(
      `${runtime} [data-node="${cluster.node}"] [data-resource="nvidia.com/gpu"]`
    );
    const holders = page.locator(`${runtime} .jp-Convect-holders li`);
    const open = async known => {
      const began = Date.now();
      await execute(page, 'convect:show-cluster');
      await gpus.waitFor();
      const first = Date.now() - began;
      await known.first().waitFor();
      return { first: first / 1000, read: (Date.now() - began) / 1000 };
    };
    const whole = gpus.and(page.locator('[data-unknown="false"]'));
    const { first, read } = await open(whole);
    await holders.first().waitFor();
    const opened = [];
    for (let turn = 0; turn < 5; turn += 1) {
      await execute(page, 'application:close');
      await gpus.waitFor({ state: 'detached' });
      opened.push((await open(whole.and(gpus))).read);
    }
    const updated = [];
    for (const pod of cluster.changes) {
      const before = await gpus.textContent();
      await create('/api/v1/namespaces/default/pods', pod);
      const began = Date.now();
      await page.waitForFunction(
        ([selector, before]) =>
          document.querySelector(selector)?.textContent !== before,
        [
          `${runtime} [data-node="${cluster.node}"] [data-resource="nvidia.com/gpu"]`,
          before
        ]
      );
      updated.push((Date.now() - began) / 1000);
    }
    return { first, read, opened, updated };
  },

  /** Pipelines in the editor, each on a page of its own: see `pipeline` below. */
  async editor(page) {
    const found = {};
    // The canvas is loaded with the first pipeline, whatever its size.
    await pipeline(page, 'small.pipeline');
    for (const size of sizes) {
      found[size] = await pipeline(page, `large-${size}.pipeline`);
    }
    return found;
  }
};

/** Have the API server of the cluster make something. */
function create(path, item) {
  const { server, ca, cert, key } = cluster.api;
  const body = JSON.stringify(item);
  return new Promise((resolve, reject) => {
    const asked = https.request(
      server + path,
      {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        ca: readFileSync(ca),
        cert: readFileSync(cert),
        key: readFileSync(key)
      },
      answer => {
        answer.resume();
        answer.on('end', () =>
          answer.statusCode === 201
            ? resolve()
            : reject(new Error(`${path}: ${answer.statusCode}`))
        );
      }
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

/** The middle of the node that is nearest to a place. */
function nearest(nodes, { x, y }) {
  return nodes.evaluateAll(
    (all, [x, y]) =>
      all
        .map(each => each.getBoundingClientRect())
        .map(box => ({ x: box.x + box.width / 2, y: box.y + box.height / 2 }))
        .sort(
          (one, other) =>
            Math.hypot(one.x - x, one.y - y) -
            Math.hypot(other.x - x, other.y - y)
        )[0],
    [x, y]
  );
}

/** Until it is drawn; and the frames while it is moved, a node is dragged, a field is typed into. */
async function pipeline(page, path) {
  const began = Date.now();
  await execute(page, 'docmanager:open', { path });
  const editor = page.locator('.jp-Convect-editor:visible');
  const node = editor.locator('.react-flow__node:visible');
  await node.first().waitFor();
  const opened = Date.now() - began;
  const pane = await editor.locator('.react-flow__pane').boundingBox();
  const middle = { x: pane.x + pane.width / 2, y: pane.y + pane.height / 2 };
  const moved = await frames(page, async () => {
    await page.mouse.move(middle.x, middle.y);
    for (let turn = 0; turn < 90; turn += 1) {
      await page.mouse.wheel(turn % 2 ? 3 : -3, turn % 4 > 1 ? 20 : -20);
      await page.waitForTimeout(16);
    }
  });
  await execute(page, 'convect:pipeline-zoom', { step: 'reset' });
  await page.waitForTimeout(500);
  const from = await nearest(node, middle);
  const dragged = await frames(page, async () => {
    await page.mouse.move(from.x, from.y);
    await page.mouse.down();
    for (let turn = 0; turn < 60; turn += 1) {
      await page.mouse.move(from.x + turn, from.y + turn / 2);
      await page.waitForTimeout(16);
    }
    await page.mouse.up();
  });
  const now = await nearest(node, middle);
  await page.mouse.dblclick(now.x, now.y);
  const field = editor.locator('.jp-Convect-field[data-path="name"] input');
  await field.fill('');
  const typed = await frames(page, () =>
    field.pressSequentially('a name of some length', { delay: 30 })
  );
  await execute(page, 'docmanager:save');
  await execute(page, 'application:close');
  return { opened, moved, dragged, typed };
}

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
