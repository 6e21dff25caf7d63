import * as React from 'react';

/** The colours of JupyterLab's theme, as a canvas needs them. */
export interface IColours {
  text: string;
  faint: string;
  line: string;
  background: string;
  good: string;
  bad: string;
  series: string[];
}

function readColours(): IColours {
  const style = getComputedStyle(document.body);
  const colour = (name: string) =>
    style.getPropertyValue(`--jp-${name}`).trim();
  return {
    text: colour('ui-font-color1'),
    faint: colour('ui-font-color2'),
    line: colour('border-color2'),
    background: colour('layout-color1'),
    good: colour('success-color1'),
    bad: colour('error-color1'),
    series: [
      colour('brand-color1'),
      colour('warn-color1'),
      colour('success-color1'),
      colour('accent-color1'),
      colour('error-color1'),
      colour('info-color1')
    ]
  };
}

/** The colours now, and again when the theme changes. */
export function useColours(): IColours {
  const [colours, setColours] = React.useState(readColours);
  React.useEffect(() => {
    const update = () => setColours(readColours());
    let timer = 0;
    const observer = new MutationObserver(() => {
      // The sheet of the theme arrives a little after its name.
      window.clearTimeout(timer);
      timer = window.setTimeout(update, 100);
    });
    observer.observe(document.body, {
      attributes: true,
      attributeFilter: ['data-jp-theme-name', 'data-jp-theme-light']
    });
    return () => {
      observer.disconnect();
      window.clearTimeout(timer);
    };
  }, []);
  return colours;
}
