import { ToolbarButton } from '@jupyterlab/apputils';
import { caretDownEmptyIcon } from '@jupyterlab/ui-components';
import type { CommandRegistry } from '@lumino/commands';
import type { ReadonlyJSONObject } from '@lumino/coreutils';
import { Menu } from '@lumino/widgets';

/** What else can be done to a file; null parts what is above from what is below. */
export const FILE_COMMANDS = [
  'convect:schedule',
  'convect:make-callable',
  null,
  'convect:show-schedules',
  'convect:show-endpoints'
] as const;

/** A button of a toolbar that opens a menu of commands; `args` says what they are about. */
export function menuButton(options: {
  commands: CommandRegistry;
  ids: readonly (string | null)[];
  label: string;
  args: () => ReadonlyJSONObject;
}): ToolbarButton {
  const { commands, ids, label, args } = options;
  const open = () => {
    const menu = new Menu({ commands });
    menu.addClass('jp-Convect-toolbarMenu');
    menu.title.label = label;
    for (const command of ids) {
      if (command === null) {
        menu.addItem({ type: 'separator' });
      } else if (commands.hasCommand(command)) {
        menu.addItem({ command, args: args() });
      }
    }
    menu.aboutToClose.connect(() => {
      setExpanded(false);
      // It closes before it executes what was chosen.
      void Promise.resolve().then(() => {
        menu.dispose();
        // Whoever opened it by the keyboard goes on from there.
        buttonIn(button)?.focus();
      });
    });
    const { left, bottom } = button.node.getBoundingClientRect();
    setExpanded(true);
    menu.open(left, bottom);
    menu.activateNextItem();
  };
  const button = new ToolbarButton({
    icon: caretDownEmptyIcon,
    tooltip: label,
    onClick: open
  });
  button.addClass('jp-Convect-menuButton');
  const setExpanded = (isOpen: boolean) =>
    buttonIn(button)?.setAttribute('aria-expanded', String(isOpen));
  void button.renderPromise?.then(() => {
    buttonIn(button)?.setAttribute('aria-haspopup', 'menu');
    setExpanded(false);
  });
  return button;
}

function buttonIn({ node }: ToolbarButton): HTMLElement | null {
  return node.querySelector<HTMLElement>('jp-button, button');
}
