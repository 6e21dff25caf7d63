import type { Terminal } from '@jupyterlab/services';
import type { CommandRegistry } from '@lumino/commands';

import { commandLine } from '../../ui/shell';

/** JupyterLab's own command; it is there only when the server has terminals. */
const CREATE = 'terminal:create-new';

export function hasTerminals(commands: CommandRegistry): boolean {
  return commands.hasCommand(CREATE);
}

/** Open a terminal in JupyterLab that looks around where a step runs. */
export async function openShell(
  commands: CommandRegistry,
  run: string,
  step: string
): Promise<void> {
  const opened = (await commands.execute(CREATE)) as {
    content: { session: Terminal.ITerminalConnection };
  };
  const line = commandLine(['convect', 'runs', 'shell', run, step]);
  opened.content.session.send({ type: 'stdin', content: [`${line}\r`] });
}
