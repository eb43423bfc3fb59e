import { describe, expect, test } from '@jest/globals'
import schema from '#gen/config/schema.json' with { type: 'json' }
import { formatProblem, validate } from './validate.ts'

const DECIDED_AT_ONCE = new Set(['oneOf', 'anyOf', 'allOf', 'not', 'if', 'then', 'else'])

/** Paths of references whose outcome decides whether a rule around them holds. */
function referencesUnderRules(node: unknown, path: string, isUnderRule: boolean): string[] {
  if (typeof node !== 'object' || node === null) return []
  const own = isUnderRule && '$ref' in node ? [path] : []
  return [...own, ...Object.entries(node).flatMap(([name, child]) => referencesUnderRules(child, `${path}/${name}`, isUnderRule || DECIDED_AT_ONCE.has(name)))]
}

describe('schema definitions that are compiled on demand', () => {
  test('are never referenced under oneOf, anyOf or not', () => {
    expect(referencesUnderRules({ oneOf: [{ $ref: '#/$defs/A' }] }, '', false)).toEqual(['/oneOf/0'])
    expect(referencesUnderRules(schema.$defs, '', false)).toEqual([])
  })

  test('report problems with their full path at every level, and fill in defaults', () => {
    const policy = { key: 'k', policy: { kind: 'ProxyPolicy', namespace: 'n', name: 'p' }, target: { kind: 'Gateway', namespace: 'n', name: 'g' } }
    const bad = { ...policy, traffic: { rateLimit: { local: [{ requests: 'many' }] }, retry: { attempts: -1 } }, nothing: 1 }
    const problems = validate('Policy', bad).map(formatProblem)
    expect(problems.some((one) => one.startsWith('nothing: unknown field; known here: '))).toBe(true)
    expect(problems.some((one) => one.startsWith('traffic.rateLimit.local[0].requests: must be an integer'))).toBe(true)
    expect(problems.some((one) => one.startsWith('traffic.retry.attempts: must be >= '))).toBe(true)
    const good = { ...policy, traffic: {} }
    expect(validate('Policy', good)).toEqual([])
    expect(good.traffic).toEqual({ phase: 'PostRouting' })
  })
})
