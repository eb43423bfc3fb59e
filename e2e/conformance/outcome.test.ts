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

describe('the outcome of a conformance run', () => {
  test('lists a feature as passing if all of its tests pass or it has no test', () => {
    const outcome = readOutcome(logOf({ SimpleRoute: 'PASS', CorsRoute: 'PASS', DatagramRoute: 'SKIP' }), needs, requested)
    expect(outcome).toEqual({ passed: ['CorsRoute', 'SimpleRoute'], failed: [], skipped: [], passing: requested, failing: {} })
  })
  test('counts a failed test against the extended feature that it needs, not against the route kind', () => {
    const outcome = readOutcome(logOf({ SimpleRoute: 'PASS', CorsRoute: 'FAIL' }), needs, requested)
    expect(outcome.failing).toEqual({ HTTPRouteCORS: ['CorsRoute'] })
    expect(outcome.passing).toEqual(['Gateway', 'HTTPRoute', 'HTTPRouteRetryConnectionError'])
  })
  test('counts a failed test of core features against those features', () => {
    expect(Object.keys(readOutcome(logOf({ SimpleRoute: 'FAIL', CorsRoute: 'PASS' }), needs, requested).failing)).toEqual(['Gateway', 'HTTPRoute'])
  })
  test('counts a skipped test against its feature only if the feature was requested', () => {
    const outcome = readOutcome(logOf({ SimpleRoute: 'PASS', CorsRoute: 'SKIP', DatagramRoute: 'SKIP' }), needs, requested)
    expect(outcome.skipped).toEqual(['CorsRoute'])
    expect(outcome.failing).toEqual({ HTTPRouteCORS: ['CorsRoute'] })
  })
  test('does not count a test as passed if it did not run', () => {
    expect(readOutcome(logOf({ SimpleRoute: 'PASS' }), needs, requested).failing).toEqual({ HTTPRouteCORS: ['CorsRoute'] })
  })
  test('ignores subtests and other lines of the log', () => {
    const log = '        --- FAIL: TestConformance/CorsRoute/one (0.1s)\n    --- PASS: TestConformance/CorsRoute (1.00s)\n    helpers.go:1: --- FAIL: x'
    expect(readOutcome(log, needs, requested)).toMatchObject({ passed: ['CorsRoute'], failed: [] })
  })
})
