import { boxOf, documentOf, editorOf, nodeOf } from './editor';
import { expect, openFile, test, upload } from './helpers';

const RUN = { kind: 'command', command: ['true'] };
const NODES = {
  one: RUN,
  two: RUN,
  last: { ...RUN, after: ['one', 'two'] }
};
const LAYOUT = { one: [0, 0], two: [0, 160], last: [360, 80] };

test('several nodes or connections are chosen with Control and changed as one', async ({
  page,
  tmpPath
}) => {
  const document = { convect: 1, nodes: NODES, layout: LAYOUT };
  await upload(page, `${tmpPath}/several.pipeline`, JSON.stringify(document));
  await openFile(page, `${tmpPath}/several.pipeline`);
  await boxOf(nodeOf(page, 'last'));
  const nodes = async () => (await documentOf(page)).nodes;

  const line = (from: string) =>
    editorOf(page).locator(`.react-flow__edge[data-id="${from}>last"] .react-flow__edge-interaction`);
  await line('one').click({ force: true });
  await line('two').click({ force: true, modifiers: ['Control'] });
  await page.keyboard.press('Delete');
  await expect.poll(async () => (await nodes()).last).toEqual(RUN);
  await page.keyboard.press('Control+z');
  await expect.poll(nodes).toEqual(NODES);

  const at = { position: { x: 60, y: 20 } };
  await nodeOf(page, 'one').click(at);
  await nodeOf(page, 'two').click({ ...at, modifiers: ['Control'] });
  await page.keyboard.press('d');
  const off = { ...RUN, disabled: true };
  await expect.poll(nodes).toEqual({ ...NODES, one: off, two: off });
  await expect(nodeOf(page, 'one').getByText('disabled')).toBeVisible();
  await expect(nodeOf(page, 'last').getByText('disabled')).toHaveCount(0);
  await page.keyboard.press('d');
  await expect.poll(nodes).toEqual(NODES);
});
