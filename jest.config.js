export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/api', '<rootDir>/operator', '<rootDir>/dataplane', '<rootDir>/cdk8s', '<rootDir>/console', '<rootDir>/images', '<rootDir>/e2e'],
  // *.test.ts needs nothing but Node. *.e2e.ts needs a cluster or another program: `make e2e` runs those with jest.cluster.config.js.
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  // A worker keeps the modules of all its test files: with 2 GiB of them, a test that moves 1 GiB took seven times as long.
  workerIdleMemoryLimit: '1GB',
  // CI reports a test that passes on retry by name, with its first failure. On a developer's machine each failure counts.
  setupFilesAfterEnv: process.env.CI === undefined ? [] : ['<rootDir>/.ci/retry.js'],
  // Long enough for a loaded machine: only a test that hangs exceeds it.
  testTimeout: 120_000,
}
