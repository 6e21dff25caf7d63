const jestJupyterLab = require('@jupyterlab/testutils/lib/jest-config');

// Packages published as ES modules only, which jest has to transpile.
const esModules = [
  '@codemirror',
  '@dagrejs',
  '@jupyter/',
  '@jupyterlab/',
  '@microsoft',
  '@rjsf',
  '@tanstack',
  '@xyflow',
  'd3-.*',
  'echarts',
  'exenv-es6',
  'lib0',
  'nanoid',
  'vscode-ws-jsonrpc',
  'y-protocols',
  'y-websocket',
  'yjs',
  'zrender'
].join('|');

const base = jestJupyterLab(__dirname);

module.exports = {
  ...base,
  roots: ['<rootDir>/src'],
  // A busy machine must not fail a test.
  testTimeout: 60000,
  testRegex: 'src/(.*/)?__tests__/.*\\.spec\\.tsx?$',
  transformIgnorePatterns: [`/node_modules/(?!${esModules}).+`]
};
