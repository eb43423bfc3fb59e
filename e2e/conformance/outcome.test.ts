import { describe, expect, test } from '@jest/globals'
import { readOutcome } from './outcome.ts'

const needs = {
  SimpleRoute: ['Gateway', 'HTTPRoute'],
  CorsRoute: ['Gateway', 'HTTPRoute', 'HTTPRouteCORS'],
  DatagramRoute: ['Gateway', 'UDPRoute'],
}
const requested = ['Gateway', 'HTTPRoute', 'HTTPRouteCORS', 'HTTPRouteRetryConnectionError']
const logOf = (results: Readonly<Record<string, string>>): string =>
  ['--- FAIL: TestConformance (9.00s)', ...Object.entries(results).map(([name, result]) => `    --- ${result}: TestConformance/${name} (1.00s)`)].join('\n')

describe('outcome of a run', () => {
  test('a feature passes when every test that needs it does; one without a test passes', () => {
    const outcome = readOutcome(logOf({ SimpleRoute: 'PASS', CorsRoute: 'PASS', DatagramRoute: 'SKIP' }), needs, requested)
    expect(outcome).toEqual({ passed: ['CorsRoute', 'SimpleRoute'], failed: [], skipped: [], passing: requested, failing: {} })
  })
  test('a failed test speaks against the extended feature that it needs, not against the kind of route', () => {
    const outcome = readOutcome(logOf({ SimpleRoute: 'PASS', CorsRoute: 'FAIL' }), needs, requested)
    expect(outcome.failing).toEqual({ HTTPRouteCORS: ['CorsRoute'] })
    expect(outcome.passing).toEqual(['Gateway', 'HTTPRoute', 'HTTPRouteRetryConnectionError'])
  })
  test('a failed test of core features speaks against those', () => {
    expect(Object.keys(readOutcome(logOf({ SimpleRoute: 'FAIL', CorsRoute: 'PASS' }), needs, requested).failing)).toEqual(['Gateway', 'HTTPRoute'])
  })
  test('a test that gave up counts against its feature, one that was not asked for does not', () => {
    const outcome = readOutcome(logOf({ SimpleRoute: 'PASS', CorsRoute: 'SKIP', DatagramRoute: 'SKIP' }), needs, requested)
    expect(outcome.skipped).toEqual(['CorsRoute'])
    expect(outcome.failing).toEqual({ HTTPRouteCORS: ['CorsRoute'] })
  })
  test('a test that the run did not come to does not pass', () => {
    expect(readOutcome(logOf({ SimpleRoute: 'PASS' }), needs, requested).failing).toEqual({ HTTPRouteCORS: ['CorsRoute'] })
  })
  test('subtests and other lines do not count', () => {
    const log = '        --- FAIL: TestConformance/CorsRoute/one (0.1s)\n    --- PASS: TestConformance/CorsRoute (1.00s)\n    helpers.go:1: --- FAIL: x'
    expect(readOutcome(log, needs, requested)).toMatchObject({ passed: ['CorsRoute'], failed: [] })
  })
})
