import js from '@eslint/js';
import jupyterPlugin from '@jupyter/eslint-plugin';
import { defineConfig } from 'eslint/config';
import prettierRecommended from 'eslint-plugin-prettier/recommended';
import reactHooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import tseslint from 'typescript-eslint';

const code = ['**/*.ts', '**/*.tsx', '**/*.mjs'];

/** What each folder must not import; `docs/architecture.md` says why. */
const FEATURES = [
  'catalog',
  'pipeline',
  'runs',
  'schedules',
  'services',
  'cluster',
  'training'
];
const FORBIDDEN = {
  api: ['charts', 'settings', 'ui', ...FEATURES],
  ui: ['charts', 'settings', ...FEATURES],
  settings: FEATURES,
  charts: ['settings', ...FEATURES],
  ...Object.fromEntries(
    FEATURES.map(own => [own, FEATURES.filter(other => other !== own)])
  )
};

/** What a feature lets others import: names, pictures, and what is written for them. */
const PUBLIC = ['ids', 'icons', 'approval', 'filtered'];

const layers = Object.entries(FORBIDDEN).map(([folder, others]) => ({
  files: [`src/${folder}/**/*.ts`, `src/${folder}/**/*.tsx`],
  ignores: ['**/__tests__/**'],
  rules: {
    '@typescript-eslint/no-restricted-imports': [
      'error',
      {
        patterns: [
          {
            regex: `^(\\.\\./)+(${others.join('|')})(/(?!(${PUBLIC.join('|')})$)|$)`,
            allowTypeImports: FEATURES.includes(folder),
            message: `src/${folder}/ must not know the insides of it.`
          }
        ]
      }
    ]
  }
}));

export default defineConfig([
  {
    ignores: [
      '**/node_modules',
      '**/*.js',
      '**/*.d.ts',
      '.venv',
      'coverage',
      'lib',
      'jupyterlab_convect',
      'ui-tests/playwright-report',
      'ui-tests/test-results'
    ]
  },
  { plugins: { jupyter: jupyterPlugin } },
  jupyterPlugin.configs.recommended,
  {
    files: code,
    extends: [js.configs.recommended, tseslint.configs.recommended]
  },
  {
    files: ['src/**/*.ts', 'src/**/*.tsx'],
    plugins: { 'react-hooks': reactHooks },
    languageOptions: {
      globals: globals.browser,
      parserOptions: { project: 'tsconfig.test.json', sourceType: 'module' }
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-namespace': 'off',
      'react-hooks/exhaustive-deps': 'error',
      'react-hooks/rules-of-hooks': 'error',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'prefer-arrow-callback': 'error',
      // What every other plugin asks for when it is activated.
      'jupyter/prefer-lazy-imports': [
        'error',
        {
          ignoreImports: [
            '../api',
            '../../api',
            './client',
            './commands',
            './drive',
            './endings',
            './model',
            './panel',
            './status',
            './store'
          ]
        }
      ]
    }
  },
  ...layers,
  {
    files: ['**/__tests__/**', 'ui-tests/**'],
    rules: { 'jupyter/no-untranslated-string': 'off' }
  },
  { files: code, extends: [prettierRecommended] }
]);
