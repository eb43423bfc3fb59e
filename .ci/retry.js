// A shared machine is sometimes slow for reasons outside the test, so a failed test is retried once: those of `make e2e` always, those of `make test` in CI.
// The reporter lists each retried test with its first failure, so that the test is fixed and not hidden.
import { jest } from '@jest/globals'

jest.retryTimes(1, { logErrorsBeforeRetry: true })
