/** Galata's settings with the system's Chromium, which needs no download. */
const base = require('@jupyterlab/galata/lib/playwright-config');
const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

// The config is read again by every worker: the first one finds a free port and makes the folder.
process.env.CONVECT_UI_PORT ||= execFileSync(process.execPath, [
  '-e',
  "const s = require('net').createServer().listen(0, '127.0.0.1', () => { console.log(s.address().port); s.close(); })"
])
  .toString()
  .trim();
const port = process.env.CONVECT_UI_PORT;
process.env.CONVECT_UI_HOME ||= fs.mkdtempSync(
  path.join(os.tmpdir(), 'convect-ui-')
);
const home = process.env.CONVECT_UI_HOME;

module.exports = {
  ...base,
  testDir: 'tests',
  // Nothing depends on how fast the machine is: these end only what would never end.
  timeout: 600000,
  expect: { timeout: 90000, toPass: { timeout: 90000 } },
  workers: 1,
  retries: 0,
  reporter: [
    ['list'],
    [
      'json',
      {
        outputFile:
          process.env.PLAYWRIGHT_JSON_OUTPUT_NAME || 'test-results/report.json'
      }
    ]
  ],
  use: {
    ...base.use,
    baseURL: `http://127.0.0.1:${port}`,
    launchOptions: {
      executablePath:
        process.env.PLAYWRIGHT_CHROMIUM_EXECUTABLE_PATH || '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-dev-shm-usage',
        '--disable-gpu',
        '--disable-software-rasterizer'
      ]
    },
    // Nothing is still moving when it is measured or clicked.
    contextOptions: { reducedMotion: 'reduce' },
    actionTimeout: 90000,
    // It costs a third of the time; set the variable to see what a failure was.
    trace: process.env.CONVECT_UI_TRACE ? 'retain-on-failure' : 'off',
    screenshot: 'only-on-failure',
    // Playwright would need an ffmpeg of its own.
    video: 'off'
  },
  webServer: {
    command: 'jlpm start',
    env: {
      ...process.env,
      CONVECT_UI_PORT: port,
      JUPYTER_CONFIG_DIR: path.join(home, 'config'),
      JUPYTER_DATA_DIR: path.join(home, 'data'),
      JUPYTER_RUNTIME_DIR: path.join(home, 'runtime'),
      XDG_CACHE_HOME: path.join(home, 'cache')
    },
    url: `http://127.0.0.1:${port}/lab`,
    stderr: 'pipe',
    timeout: 300000,
    reuseExistingServer: false
  }
};
