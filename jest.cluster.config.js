import base from './jest.config.js'

export default {
  ...base,
  testMatch: ['**/*.e2e.ts'],
  setupFilesAfterEnv: ['<rootDir>/.ci/retry.js'],
  testSequencer: '<rootDir>/.ci/sequencer.js',
  testTimeout: 600_000,
}
