import type { TranslationBundle } from '@jupyterlab/translation';
import type { LabIcon } from '@jupyterlab/ui-components';

import type { State } from '../api';
import { isBad, isLive, stateLabel } from '../ui/states';
import { badgeRows, innerCorner, ORDER_OFFSET, portOffset } from './boxes';
import { around } from './positions';
import type { IBox, IEdge, IPoint } from './graph';
import { foldedInto, isInside, parentsOf } from './graph';
import { download } from './download';
import { iconOf } from './nodeicon';
import { ruleBadge } from './rules';
import type { IDocument } from './schema';
import type { Session } from './session';
import type { INodeView } from './views';

/** Colours of a picture; those of the theme it was taken in. */
export interface IPalette {
  background: string;
  card: string;
  border: string;
  text: string;
  faint: string;
  wire: string;
  value: string;
  note: string;
  group: string;
  accents: { [kind: string]: string };
  stateOf: (state: State) => string;
  font: string;
}

export interface IScene {
  document: IDocument;
  views: ReadonlyMap<string, INodeView>;
  boxes: ReadonlyMap<string, IBox>;
  edges: readonly IEdge[];
  trans: TranslationBundle;
}

const MARGIN = 40;

/** The pipeline as an SVG document that needs nothing around it. */
export function toSvg(scene: IScene, palette: IPalette): string {
  const hidden = foldedInto(scene.document);
  const shown = [...scene.boxes].filter(([id]) => !hidden.has(id));
  const frame = around(shown.map(([, box]) => box)) ?? {
    x: 0,
    y: 0,
    width: 200,
    height: 100
  };
  const [x, y] = [frame.x - MARGIN, frame.y - MARGIN];
  const [width, height] = [frame.width + 2 * MARGIN, frame.height + 2 * MARGIN];
  const isOpenGroup = (id: string) => {
    const view = scene.views.get(id);
    return view?.kind === 'group' && !view.isFolded;
  };
  const parts = [
    ...shown
      .filter(([id]) => isOpenGroup(id))
      .map(([id, box]) => groupPart(scene.views.get(id)!, box, palette)),
    ...edgeParts(scene, hidden, palette),
    ...shown
      .filter(([id]) => !isOpenGroup(id))
      .map(([id, box]) => {
        const view = scene.views.get(id);
        return view
          ? cardPart(view, box, scene, palette) +
              innerPart(view, box, scene, palette)
          : notePart(scene.document.comments?.[id]?.text ?? '', box, palette);
      })
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="${x} ${y} ${width} ${height}" font-family="${escape(palette.font)}" font-size="13">`,
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" fill="${palette.background}"/>`,
    ...parts,
    '</svg>',
    ''
  ].join('\n');
}

function edgeParts(
  scene: IScene,
  hidden: ReadonlyMap<string, string>,
  palette: IPalette
): string[] {
  const parents = parentsOf(scene.document);
  const drawn = new Set<string>();
  return scene.edges.flatMap(edge => {
    const from = hidden.get(edge.source) ?? edge.source;
    const to = hidden.get(edge.target) ?? edge.target;
    const [start, end] = [scene.boxes.get(from), scene.boxes.get(to)];
    if (!start || !end || from === to || isInside(parents, from, to)) {
      return [];
    }
    const [out, into] = [scene.views.get(from), scene.views.get(to)];
    const outIndex = out?.outputs.findIndex(port => port.name === edge.output);
    const inIndex = into?.inputs.findIndex(
      port => port.name === edge.path?.[1]
    );
    const x1 = start.x + start.width;
    const y1 = start.y + offset(out, outIndex);
    const x2 = end.x;
    const y2 = end.y + offset(into, inIndex);
    const part = wirePart(
      { x: x1, y: y1 },
      { x: x2, y: y2 },
      edge.kind,
      palette
    );
    if (drawn.has(part)) {
      return [];
    }
    drawn.add(part);
    return [part];
  });
}

function wirePart(
  from: IPoint,
  to: IPoint,
  kind: IEdge['kind'],
  palette: IPalette
): string {
  const bend = Math.max(30, Math.abs(to.x - from.x) / 2);
  const path = `M${from.x} ${from.y}C${from.x + bend} ${from.y} ${to.x - bend} ${to.y} ${to.x} ${to.y}`;
  const colour = kind === 'value' ? palette.value : palette.wire;
  const tip = `<path d="M${to.x} ${to.y}l-8 -4v8z" fill="${colour}"/>`;
  return `<path d="${path}" fill="none" stroke="${colour}" stroke-width="1.6"/>${tip}`;
}

/** What is in an unfolded graph component. */
function innerPart(
  view: INodeView,
  outer: IBox,
  scene: IScene,
  palette: IPalette
): string {
  if (!view.inner) {
    return '';
  }
  const { views, boxes, edges } = view.inner;
  const corner = innerCorner(view);
  const place = (box: IBox): IBox => ({
    ...box,
    x: outer.x + corner.x + box.x,
    y: outer.y + corner.y + box.y
  });
  /** Inside, the inputs of the graph give and its outputs take. */
  const endOf = (id: string, name: string | undefined, gives: boolean) => {
    const box = boxes.get(id);
    const task = box ? views.get(id)! : view;
    const ports = gives === !!box ? task.outputs : task.inputs;
    const { x, y, width } = box ? place(box) : outer;
    const inset = box ? 0 : corner.x;
    return {
      x: gives === !!box ? x + width - inset : x + inset,
      y:
        y +
        offset(
          task,
          ports.findIndex(port => port.name === name)
        )
    };
  };
  return [
    ...[...boxes].map(
      ([id, box]) =>
        cardPart(views.get(id)!, place(box), scene, palette) +
        innerPart(views.get(id)!, place(box), scene, palette)
    ),
    ...edges.map(edge =>
      wirePart(
        endOf(edge.source, edge.output, true),
        endOf(edge.target, edge.input, false),
        edge.kind,
        palette
      )
    )
  ].join('');
}

function offset(
  view: INodeView | undefined,
  index: number | undefined
): number {
  return view && index !== undefined && index >= 0
    ? portOffset(view, index)
    : ORDER_OFFSET;
}

function cardPart(
  view: INodeView,
  box: IBox,
  { trans }: IScene,
  palette: IPalette
): string {
  const { x, y, width, height } = box;
  const accent = palette.accents[view.kind] ?? palette.border;
  const ports = [
    ...view.inputs.map(
      (port, index) =>
        `<text x="${x + 14}" y="${y + portOffset(view, index) + 4}" font-size="11" fill="${palette.faint}">${fit(port.name, 16)}</text>`
    ),
    ...view.outputs.map(
      (port, index) =>
        `<text x="${x + width - 10}" y="${y + portOffset(view, index) + 4}" font-size="11" text-anchor="end" fill="${palette.faint}">${fit(port.name, 16)}</text>`
    )
  ];
  const rows = [
    ...view.rules.map(rule => ruleBadge(rule, trans)),
    ...badgeRows(view).map(row => row.map(badge => badge.text).join(' · '))
  ].map(
    (text, index) =>
      `<text x="${x + 14}" y="${y + 61 + index * 24}" font-size="10" fill="${palette.text}">${fit(text, 38)}</text>`
  );
  return [
    `<g>`,
    `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="6" fill="${palette.card}" stroke="${palette.border}"/>`,
    `<rect x="${x}" y="${y}" width="4" height="${height}" rx="2" fill="${accent}"/>`,
    iconPart(iconOf(view), x + 12, y + 14),
    `<text x="${x + 38}" y="${y + 20}" font-weight="600" fill="${palette.text}">${fit(view.name, 22)}</text>`,
    `<text x="${x + 38}" y="${y + 37}" font-size="11" fill="${palette.faint}">${fit(view.subtitle, 28)}</text>`,
    ...rows,
    ...ports,
    ...(view.step ? [statePart(view.step.state, box, trans, palette)] : []),
    `</g>`
  ].join('');
}

function iconPart({ svgstr }: LabIcon, x: number, y: number): string {
  const place = `x="${x}" y="${y}" width="20" height="20"`;
  return svgstr.slice(svgstr.indexOf('<svg')).replace(/<svg[^>]*>/, tag => {
    const [box] = /viewBox="[^"]*"/.exec(tag) ?? [''];
    return `<svg ${place} ${box}>`;
  });
}

/** What became of it in the run that is shown. */
function statePart(
  state: State,
  { x, y, height }: IBox,
  trans: TranslationBundle,
  palette: IPalette
): string {
  const colour = palette.stateOf(state);
  return `<circle cx="${x + 18}" cy="${y + height - 11}" r="4" fill="${colour}"/><text x="${x + 28}" y="${y + height - 7}" font-size="11" fill="${colour}">${fit(stateLabel(trans, state), 24)}</text>`;
}

function groupPart(view: INodeView, box: IBox, palette: IPalette): string {
  return `<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" rx="8" fill="${palette.group}" stroke="${palette.border}"/><text x="${box.x + 12}" y="${box.y + 20}" font-weight="600" fill="${palette.text}">${fit(view.name, 40)}</text>`;
}

function notePart(text: string, box: IBox, palette: IPalette): string {
  const lines = plainText(text)
    .split('\n')
    .slice(0, Math.max(1, Math.floor(box.height / 17)))
    .map(
      (line, index) =>
        `<text x="${box.x + 10}" y="${box.y + 20 + index * 17}" fill="${palette.text}">${fit(line, Math.floor(box.width / 7))}</text>`
    );
  return `<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" rx="4" fill="${palette.note}" stroke="${palette.border}"/>${lines.join('')}`;
}

/** Markdown without its marks; a picture has one kind of letters. */
function plainText(markdown: string): string {
  return markdown
    .replace(/^\s{0,3}(#{1,6}|>)\s+/gm, '')
    .replace(/^(\s*)[-*+]\s+/gm, '$1• ')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/(\*\*|__|`|\$\$?)(.+?)\1/g, '$2')
    .replace(/(^|\W)[*_](\S[^*_]*)[*_](?=\W|$)/g, '$1$2');
}

function fit(text: string, length: number): string {
  return escape(text.length > length ? `${text.slice(0, length - 1)}…` : text);
}

function escape(text: string): string {
  return text
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}

/** Download a picture of the pipeline. */
export async function exportPicture(
  session: Session,
  format: 'svg' | 'png'
): Promise<void> {
  const svg = toSvg(
    {
      document: session.document,
      views: session.views,
      boxes: session.boxes,
      edges: session.edges,
      trans: session.trans
    },
    currentPalette()
  );
  const blob = new Blob([svg], { type: 'image/svg+xml' });
  const picture = format === 'svg' ? blob : await rasterise(blob);
  download(session, picture, format);
}

/** Twice the size, for screens with many dots; less where that is too much. */
async function rasterise(svg: Blob): Promise<Blob> {
  const url = URL.createObjectURL(svg);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const scale = Math.min(2, 8000 / Math.max(image.width, image.height));
    const canvas = document.createElement('canvas');
    canvas.width = image.width * scale;
    canvas.height = image.height * scale;
    canvas
      .getContext('2d')!
      .drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve, reject) =>
      canvas.toBlob(
        blob => (blob ? resolve(blob) : reject(new Error('no picture'))),
        'image/png'
      )
    );
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** The colours of the theme, as the style sheet uses them. */
function currentPalette(): IPalette {
  const style = getComputedStyle(document.body);
  const get = (name: string) => style.getPropertyValue(`--jp-${name}`).trim();
  return {
    background: get('layout-color1'),
    card: get('layout-color0'),
    border: get('border-color1'),
    text: get('ui-font-color1'),
    faint: get('ui-font-color2'),
    wire: get('inverse-layout-color4'),
    value: get('brand-color1'),
    note: get('warn-color3'),
    group: get('layout-color2'),
    accents: {
      notebook: get('warn-color1'),
      script: get('info-color1'),
      component: get('accent-color1'),
      command: get('ui-font-color3'),
      group: get('ui-font-color3')
    },
    stateOf: state =>
      isBad(state)
        ? get('error-color1')
        : isLive(state)
          ? get('brand-color1')
          : state === 'succeeded' || state === 'cached'
            ? get('success-color1')
            : get('ui-font-color2'),
    font: get('ui-font-family') || 'sans-serif'
  };
}
