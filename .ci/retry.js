// Real clusters, brokers and browsers on a shared machine sometimes answer late for reasons of their own: a test against them is tried once more.
// The reporter names each test that needed it, with what it said at first, so that none hides.
import { jest } from '@jest/globals'

jest.retryTimes(1, { logErrorsBeforeRetry: true })
