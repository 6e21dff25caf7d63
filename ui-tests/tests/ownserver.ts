import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { answers, freePort } from './helpers';

/** A server of a test's own, that can be killed and started again. */
export class OwnServer {
  static async create(): Promise<OwnServer> {
    return new OwnServer(await freePort(), mkdtempSync(join(tmpdir(), 'convect-own-')));
  }

  private constructor(
    readonly port: string,
    readonly home: string
  ) {}

  get address(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async start(...options: string[]): Promise<void> {
    const env = {
      ...process.env,
      CONVECT_UI_PORT: this.port,
      JUPYTERLAB_GALATA_ROOT_DIR: this.home,
      JUPYTER_CONFIG_DIR: join(this.home, '.config'),
      JUPYTER_DATA_DIR: join(this.home, '.data'),
      JUPYTER_RUNTIME_DIR: join(this.home, '.runtime'),
      XDG_CACHE_HOME: join(this.home, '.cache')
    };
    const words = ['--config', 'jupyter_server_test_config.py', ...options];
    this.process = spawn('jupyter-lab', words, { env, stdio: 'ignore' });
    await answers(this.address);
  }

  async kill(): Promise<void> {
    const { process } = this;
    if (process && process.exitCode === null && process.signalCode === null) {
      const gone = new Promise(resolve => process.once('exit', resolve));
      process.kill('SIGKILL');
      await gone;
    }
  }

  private process: ChildProcess | null = null;
}
