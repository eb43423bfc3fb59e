import { readFileSync } from 'node:fs'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { readRules } from './rules.ts'

const run = promisify(execFile)
const CASES = join(import.meta.dirname, 'alerts.test.yaml')
const cases = parse(readFileSync(CASES, 'utf8')) as {
  readonly tests: readonly { readonly alert_rule_test: readonly { readonly alertname: string; readonly exp_alerts: readonly object[] }[] }[]
}

test('promtool fires each alert as its cases expect', async () => {
  expect((await run('promtool', ['test', 'rules', CASES])).stdout).toMatch(/SUCCESS/)
})

test.each(readRules().map(({ alert }) => alert))('alert %s has a case that fires it and one that does not', (alert) => {
  const fired = cases.tests.flatMap((each) => each.alert_rule_test).filter(({ alertname }) => alertname === alert)
  expect(fired.map(({ exp_alerts }) => exp_alerts.length > 0)).toEqual(expect.arrayContaining([true, false]))
})

test.each(readRules())('alert $alert has a severity, a summary and a description', ({ labels, annotations }) => {
  expect(labels.severity).toMatch(/^(warning|critical)$/)
  expect(annotations).toEqual({ summary: expect.stringMatching(/\.$/), description: expect.stringMatching(/\.$/) })
})
