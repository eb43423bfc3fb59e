// Clusters and browsers on a shared machine are sometimes slow for reasons outside the test, so a failed e2e test is retried once.
// The reporter lists each retried test with its first failure.
import { jest } from '@jest/globals'

jest.retryTimes(1, { logErrorsBeforeRetry: true })
