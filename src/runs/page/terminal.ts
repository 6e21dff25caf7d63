import type { Terminal } from '@jupyterlab/services';
import type { CommandRegistry } from '@lumino/commands';

import { commandLine } from '../../ui/shell';

/** JupyterLab's own command; it is there only when the server has terminals. */
const CREATE = 'terminal:create-new';

/** How long a shell may take to say that it is ready, in milliseconds. */
const PATIENCE = 3000;

export function hasTerminals(commands: CommandRegistry): boolean {
  return commands.hasCommand(CREATE);
}

/** Open a terminal in JupyterLab that executes these words. */
export async function openTerminal(
  commands: CommandRegistry,
  words: readonly string[]
): Promise<void> {
  const opened = (await commands.execute(CREATE)) as {
    content: { session: Terminal.ITerminalConnection };
  };
  const { session } = opened.content;
  await firstWord(session);
  const content = [`${commandLine(words)}\r`];
  session.send({ type: 'stdin', content });
}

/** What is typed before the prompt is there would be shown twice. */
function firstWord(session: Terminal.ITerminalConnection): Promise<void> {
  return new Promise(resolve => {
    const done = () => {
      window.clearTimeout(timer);
      session.messageReceived.disconnect(onMessage);
      resolve();
    };
    const onMessage = (_: unknown, { type }: Terminal.IMessage) => {
      if (type === 'stdout') {
        done();
      }
    };
    const timer = window.setTimeout(done, PATIENCE);
    session.messageReceived.connect(onMessage);
  });
}
