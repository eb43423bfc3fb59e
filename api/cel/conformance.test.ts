import { getConformanceSuite } from '@bufbuild/cel-spec/testdata/tests.js'
import { describe, expect, test } from '@jest/globals'
import { CelError } from './error.ts'
import { CelMap } from './map.ts'
import { compilePermissive } from './program.ts'
import { collect, findReason } from './conformance-testing.ts'

/** Minimum number of tests that concern the language itself, without protobuf. */
const LEAST = 1600

describe('official conformance data (cel-spec)', () => {
  const cases = getConformanceSuite().suites.flatMap((file) =>
    file.suites.flatMap((section) => section.tests.map((each) => collect(file.name, section.name, each.original))),
  )
  const runnable = cases.filter((each) => findReason(each) === undefined)

  test('every test without protobuf messages passes, and at least 1600 run', () => {
    const failed: string[] = []
    for (const { name, expr, root, variables, expected } of runnable) {
      const { program } = compilePermissive(expr, { variables })
      const result = program.eval(root)
      if (expected.isError !== result instanceof CelError || (!expected.isError && !expected.matches(result)))
        failed.push(`${name}: ${expr} returns ${show(result)}`)
    }
    const reasons = Map.groupBy(cases, (each) => findReason(each) ?? 'run')
    const counts = [...reasons].map(([reason, { length }]) => `${reason}: ${length}`).join('; ')
    process.stdout.write(`CEL conformance: ${runnable.length - failed.length} of ${runnable.length} pass, of ${cases.length} in all (${counts})\n`)
    expect(failed).toEqual([])
    expect(runnable.length).toBeGreaterThanOrEqual(LEAST)
  })
})

function show(value: unknown): string {
  if (value instanceof CelMap) return 'a map'
  if (value instanceof CelError) return value.message
  return typeof value === 'bigint' ? `${value}n` : JSON.stringify(value, (_, member: unknown) => (typeof member === 'bigint' ? `${member}n` : member))
}
