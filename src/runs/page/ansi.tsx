import Anser from 'anser';
import * as React from 'react';

import { MAX_LENGTH } from './log';

/** A line with its colours; JupyterLab's own classes, so that they fit the theme. */
export const AnsiLine = React.memo(function AnsiLine(props: {
  line: string;
}): JSX.Element {
  const cut = props.line.length > MAX_LENGTH;
  const line = cut ? `${props.line.slice(0, MAX_LENGTH)}…` : props.line;
  if (!line.includes('\x1b')) {
    return <>{line}</>;
  }
  const parts = Anser.ansiToJson(line, {
    json: true,
    remove_empty: true,
    use_classes: true
  });
  return (
    <>
      {parts.map((part, index) => (
        <span key={index} className={classOf(part)} style={styleOf(part)}>
          {part.content}
        </span>
      ))}
    </>
  );
});

function classOf(part: Anser.AnserJsonEntry): string {
  const names: string[] = [];
  for (const [colour, suffix] of [
    [part.fg, 'fg'],
    [part.bg, 'bg']
  ]) {
    const named = /^ansi-(bright-)?([a-z]+)$/.exec(colour ?? '');
    if (named && named[2] !== 'truecolor') {
      const intense = named[1] ? '-intense' : '';
      names.push(`ansi-${named[2]}${intense}-${suffix}`);
    }
  }
  for (const decoration of part.decorations) {
    if (decoration === 'bold' || decoration === 'underline') {
      names.push(`ansi-${decoration}`);
    }
  }
  return names.join(' ');
}

function styleOf(part: Anser.AnserJsonEntry): React.CSSProperties {
  const style: React.CSSProperties = {};
  const color = exact(part.fg, part.fg_truecolor);
  const backgroundColor = exact(part.bg, part.bg_truecolor);
  if (color) {
    style.color = color;
  }
  if (backgroundColor) {
    style.backgroundColor = backgroundColor;
  }
  return style;
}

/** A colour that has no name. */
function exact(colour: string | null, trueColour: string | null): string {
  if (colour === 'ansi-truecolor' && trueColour) {
    return `rgb(${trueColour})`;
  }
  const palette = /^ansi-palette-(\d+)$/.exec(colour ?? '');
  return palette ? xterm(Number(palette[1])) : '';
}

/** Colour 16 to 255 of the terminals with 256 colours: a cube of 6 by 6 by 6, then greys. */
function xterm(number: number): string {
  if (number >= 232) {
    const grey = 8 + (number - 232) * 10;
    return `rgb(${grey}, ${grey}, ${grey})`;
  }
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40);
  const place = number - 16;
  const red = level(Math.floor(place / 36));
  const green = level(Math.floor(place / 6) % 6);
  return `rgb(${red}, ${green}, ${level(place % 6)})`;
}
