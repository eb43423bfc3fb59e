export default {
  testEnvironment: 'node',
  roots: ['<rootDir>/api', '<rootDir>/operator', '<rootDir>/dataplane', '<rootDir>/cdk8s', '<rootDir>/e2e'],
  testMatch: ['**/*.test.ts'],
  // Cluster tests need a Kubernetes API server: `make e2e` runs them with jest.cluster.config.js.
  testPathIgnorePatterns: [
    '/node_modules/',
    '/e2e/contract/',
    '/e2e/install/',
    '/e2e/cluster/',
    '/e2e/telemetry/',
    '/e2e/callouts/',
    '/e2e/mcp/',
    '/e2e/llm/litellm',
    '/e2e/identity/',
  ],
  extensionsToTreatAsEsm: ['.ts'],
  transform: { '^.+\\.ts$': '@swc/jest' },
  // Not a bar: what hangs is to be told from what is slow.
  testTimeout: 120_000,
}
