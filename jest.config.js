export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/api', '<rootDir>/operator', '<rootDir>/dataplane', '<rootDir>/cdk8s', '<rootDir>/images', '<rootDir>/e2e'],
  // *.test.ts needs nothing but Node. *.e2e.ts needs a cluster or another program: `make e2e` runs those with jest.cluster.config.js.
  testMatch: ['**/*.test.ts'],
  testPathIgnorePatterns: ['/node_modules/'],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  // Not a bar: what hangs is to be told from what is slow.
  testTimeout: 120_000,
}
