import type { IJupyterLabPageFixture } from '@jupyterlab/galata';
import type { Locator } from '@playwright/test';

import {
  execute,
  expect,
  frontPage,
  openFile,
  pressRun,
  pytorchJob,
  test,
  upload
} from './helpers';

const JOB = pytorchJob('mnist', 'registry/mnist:v1', '--epochs');

test('a faulty training job is mended, changed by its form, and converted', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/任务.yaml`;
  await upload(page, path, JOB);
  await openFile(page, path);
  const above = page.locator('.jp-Convect-training:visible');
  const problems = above.getByRole('list', { name: 'Problems' });
  await expect(problems).toContainText(
    '“image” is indented by 8 spaces, but the lines around it by 14.'
  );
  await problems.getByRole('button', { name: 'Line 15' }).click();
  await expect(page.getByText('Ln 15, Col 1')).toBeVisible();

  await above.getByRole('button', { name: 'Mend 2 problems' }).click();
  await expect(above.getByRole('status')).toHaveText('No problems');
  const text = page.locator('.cm-content:visible');
  await expect(text).toContainText('args: [--epochs, "10"]');
  await text.click();
  await page.keyboard.press('Control+Z');
  await expect(above.getByRole('status')).toHaveText('2 problems');
  await above.getByRole('button', { name: 'Mend 2 problems' }).click();

  await above.getByRole('button', { name: 'Form' }).click();
  const replicas = above.getByLabel('Replicas (Worker)');
  await replicas.fill('3');
  await replicas.press('Enter');
  await expect(text).toContainText('replicas: 3 # one for now');
  const image = above.getByLabel('Image');
  await expect(image).toHaveCount(1);
  await image.fill('registry/mnist:v2');
  await image.press('Enter');
  await expect(above.getByLabel('Image')).toHaveValue('registry/mnist:v2');
  await replicas.fill('many');
  await replicas.press('Enter');
  await expect(above.getByRole('alert')).toHaveText('Enter a whole number.');

  await above.getByRole('button', { name: 'To a TrainJob' }).click();
  const made = page.locator('.cm-content:visible');
  await expect(made).toContainText('kind: TrainJob');
  await expect(made).toContainText('numNodes: 4');
  await expect(made).toContainText('torchrun');

  await openFile(page, path);
  await above.getByRole('button', { name: 'To a pipeline' }).click();
  await expect(page.locator('.jp-Convect-cardName:visible')).toHaveText(
    'train'
  );
});

/** Ask for several processes in the form of a script. */
async function distribute(
  page: IJupyterLabPageFixture,
  processes: string
): Promise<Locator> {
  const dialog = page.locator('.jp-Convect-runDialog');
  await dialog.getByText('One run on this machine').waitFor();
  const section = dialog.getByRole('button', { name: 'Distributed training' });
  if ((await section.getAttribute('aria-expanded')) === 'false') {
    await section.click();
  }
  await dialog.getByLabel('Processes per node').first().fill(processes);
  return dialog;
}

const RANKS = `import os, sys, time
rank = int(os.environ["RANK"])
print("epoch 1 loss", 1 / (rank + 1), f"{rank + 1}.5 it/s", flush=True)
open(f"told-{rank}", "w").close()
if rank == 2:
    while not all(os.path.exists(f"told-{other}") for other in range(4)):
        time.sleep(0.1)
    sys.exit("no more data")
time.sleep(600)
`;

test('a script runs as several processes, and the one that failed comes first', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/train.py`;
  await upload(page, path, RANKS);
  // It ends with the dialog.
  void execute(page, 'convect:run-as-pipeline', { path });
  await pressRun(await distribute(page, '4'));

  const run = frontPage(page);
  await expect(run.getByText('Failed').first()).toBeVisible();
  await run.getByRole('tab', { name: 'Processes' }).click();
  const tiles = run.locator('.jp-Convect-tile');
  await expect(tiles).toHaveCount(4);
  await expect(tiles.first()).toContainText('2');
  await expect(tiles.first()).toContainText('3.5 it/s');
  await expect(tiles.first()).toContainText('no more data');
  await expect(tiles.first()).toHaveAttribute('data-state', 'failed');
  const log = run.locator('.jp-Convect-replicaLog');
  await expect(log).toContainText('The process exited with code 1.');
  await expect(log).toContainText('epoch 1 loss 0.333');
  await tiles.first().focus();
  await page.keyboard.press('ArrowRight');
  await expect(log).toContainText('Stopped because rank 2 failed.');
  await expect(log).toContainText('epoch 1 loss 1.0');
});

test('processes that hang turn amber, with their stacks in the log', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/wait.py`;
  const wait = 'import threading\nthreading.Event().wait()\n';
  await upload(page, path, wait);
  // It ends with the dialog.
  void execute(page, 'convect:run-as-pipeline', { path });
  const dialog = await distribute(page, '2');
  await dialog.getByLabel('Hangs after').first().fill('2s');
  await pressRun(dialog);

  const run = frontPage(page);
  const hangs = 'It seems to hang: no output and no use of a CPU or GPU';
  await expect(run.getByText(hangs).first()).toBeVisible();
  await run.getByRole('tab', { name: 'Processes' }).click();
  await expect(run.locator('.jp-Convect-tile[data-hangs]')).toHaveCount(2);
  const log = run.locator('.jp-Convect-replicaLog');
  await expect(log).toContainText('most recent call first');
  await run.getByRole('button', { name: 'Stop', exact: true }).click();
  await expect(run.getByText('Stopped').first()).toBeVisible();
});

test('a parameter file of DLC runs from the file browser', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/job.params`;
  await upload(page, path, 'name=a\ncommand=echo from $PWD\npriority=1\n');
  await page.filebrowser.openDirectory(tmpPath);
  await page.locator('.jp-DirListing-item', { hasText: 'job.params' }).click({
    button: 'right'
  });
  await page.getByRole('menuitem', { name: 'Run as Pipeline…' }).click();
  const dialog = page.locator('.jp-Convect-runDialog');
  await dialog.getByText('One run on this machine').waitFor();
  await expect(
    dialog.getByText('priority is not used: choose a class by')
  ).toBeVisible();
  await pressRun(dialog);
  const run = frontPage(page);
  await expect(run.getByText('Succeeded').first()).toBeVisible();
  await run.getByRole('tab', { name: 'Log' }).click();
  await expect(run.getByText(`from /`)).toBeVisible();
});

/** Two processes that learn ten digits of our own together, each from its half. */
const LEARN = `import math, os, random, time
from multiprocessing.connection import Client, Listener
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter

random.seed(0)
rank = int(os.environ["RANK"])
shapes = [[random.choice((0, 1)) for _ in range(64)] for _ in range(10)]
images = [(n % 10, [x + random.gauss(0, 0.3) for x in shapes[n % 10]]) for n in range(30)]
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))

def reach():
    while True:
        try:
            return Client(place)
        except ConnectionRefusedError:
            time.sleep(0.05)

other = Listener(place).accept() if rank == 0 else reach()

def both(mine):
    other.send(mine)
    return [(a + b) / 2 for a, b in zip(mine, other.recv())]

writer = EventFileWriter("logs") if rank == 0 else None
weights = [0.0] * 640
for epoch in range(15):
    gradient, loss = [0.0] * 640, 0.0
    mine = images[rank::2]
    for label, image in mine:
        scores = [sum(w * x for w, x in zip(weights[64 * k:64 * k + 64], image)) for k in range(10)]
        top = max(scores)
        total = sum(math.exp(score - top) for score in scores)
        chances = [math.exp(score - top) / total for score in scores]
        loss -= math.log(max(chances[label], 1e-9)) / len(mine)
        for k in range(10):
            slope = (chances[k] - (k == label)) / len(mine)
            for i, x in enumerate(image):
                gradient[64 * k + i] += slope * x
    *gradient, loss = both([*gradient, loss])
    weights = [w - 0.5 * g for w, g in zip(weights, gradient)]
    print("epoch", epoch, "loss", round(loss, 4), flush=True)
    if writer:
        summary = Summary(value=[Summary.Value(tag="loss", simple_value=loss)])
        writer.add_event(Event(step=epoch, wall_time=time.time(), summary=summary))
        writer.flush()
time.sleep(600)
`;

test('two processes learn together, and the loss is drawn here and in TensorBoard', async ({
  page,
  tmpPath
}) => {
  const path = `${tmpPath}/learn.py`;
  await upload(page, path, LEARN);
  // It ends with the dialog.
  void execute(page, 'convect:run-as-pipeline', { path });
  await pressRun(await distribute(page, '2'));
  const run = frontPage(page);
  await run.getByRole('tab', { name: 'Metrics' }).click();
  const curve = run.getByRole('img', { name: 'loss over time, 15 points' });
  await expect(curve).toBeVisible();
  await expect(run.getByRole('heading', { name: 'loss 0.' })).toBeVisible();
  await expect(run.getByText('Running').first()).toBeVisible();

  await run.getByRole('button', { name: 'Open in TensorBoard' }).click();
  const frame = page.frameLocator('.jp-Convect-opened:visible iframe');
  await expect(frame.getByText('loss').first()).toBeVisible({
    timeout: 120000
  });
  for (const kind of ['services', 'runs']) {
    const place = `/jupyterlab-convect/api/v1/${kind}`;
    const found = await (await page.request.get(place)).json();
    for (const { id } of found[kind] as { id: string }[]) {
      await page.request.post(`${place}/${id}/stop`, { data: {} });
    }
  }
});
