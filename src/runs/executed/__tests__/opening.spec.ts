import { bringIntoView } from '../opening';

/** A notebook whose cell comes into sight with the given scroll, and leaves it after some looks. */
function notebookWith(shownBy: number, pushedOutAfter = Infinity) {
  let scrolls = 0;
  let looks = 0;
  const box = (top: number, bottom: number) => ({
    getBoundingClientRect: () => ({ top, bottom }) as DOMRect
  });
  return {
    notebook: {
      node: box(0, 100) as HTMLElement,
      widgets: [
        {
          node: {
            getBoundingClientRect: () => {
              looks++;
              const isShown = scrolls >= shownBy && looks !== pushedOutAfter;
              return (
                isShown ? { top: 50, bottom: 80 } : { top: 500, bottom: 530 }
              ) as DOMRect;
            }
          }
        }
      ] as never,
      scrollToItem: () => {
        scrolls++;
        return Promise.reject('Scrolling to a new item is requested.');
      }
    },
    scrolled: () => scrolls
  };
}

describe('a cell that is opened', () => {
  it('is scrolled to until it is in sight', async () => {
    const { notebook, scrolled } = notebookWith(3);
    await bringIntoView(notebook, 0);
    expect(scrolled()).toBe(3);
  });

  it('is scrolled to again when something pushes it out of sight', async () => {
    const { notebook, scrolled } = notebookWith(1, 2);
    await bringIntoView(notebook, 0);
    expect(scrolled()).toBe(2);
  });
});
