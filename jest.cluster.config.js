import base from './jest.config.js'

export default {
  ...base,
  testMatch: [
    '<rootDir>/e2e/contract/**/*.test.ts',
    '<rootDir>/e2e/cluster/**/*.test.ts',
    '<rootDir>/e2e/install/**/*.test.ts',
    '<rootDir>/e2e/telemetry/**/*.test.ts',
    '<rootDir>/e2e/callouts/**/*.test.ts',
    '<rootDir>/e2e/mcp/**/*.test.ts',
    '<rootDir>/e2e/llm/litellm.test.ts',
    '<rootDir>/e2e/identity/**/*.test.ts',
  ],
  testPathIgnorePatterns: ['/node_modules/'],
  setupFilesAfterEnv: ['<rootDir>/.ci/retry.js'],
  testSequencer: '<rootDir>/.ci/sequencer.js',
  testTimeout: 600_000,
}
