import js from '@eslint/js';
import jupyterPlugin from '@jupyter/eslint-plugin';
import { defineConfig } from 'eslint/config';
import prettierRecommended from 'eslint-plugin-prettier/recommended';
import reactHooks from 'eslint-plugin-react-hooks';
import globals from 'globals';
import tseslint from 'typescript-eslint';

const code = ['**/*.ts', '**/*.tsx', '**/*.mjs'];

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
            './store'
          ]
        }
      ]
    }
  },
  {
    files: ['**/__tests__/**'],
    rules: { 'jupyter/no-untranslated-string': 'off' }
  },
  {
    files: ['**/__tests__/**'],
    rules: { 'jupyter/no-untranslated-string': 'off' }
  },
  { files: code, extends: [prettierRecommended] }
]);
