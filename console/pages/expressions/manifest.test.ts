import { describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { usesOf, writeManifest } from './manifest.ts'

const gateway = { namespace: 'shop', name: 'web' }
const expressions = [
  'request.path == "/admin"',
  'true',
  '"a: b # c" in request.headers &&\n\n  request.path.matches("^/x\\\\d+$")',
  ' # "starts" with a blank',
  '- "item"',
  '"ends with a blank" ',
  '"tab\tand ünicode"',
  `"><script>'"`,
]

describe('the manifest of an expression', () => {
  test.each(['request', 'response', 'log'].flatMap((phase) => usesOf(phase).map((use) => [phase, use] as const)))(
    'in phase %s as %s has its text',
    (phase, use) => {
      for (const expression of expressions) {
        const manifest = parse(writeManifest(phase, use, expression, gateway) ?? '') as Record<string, unknown>
        expect(manifest['metadata']).toEqual({ name: 'example', namespace: 'shop' })
        expect(leaves(manifest)).toContain(expression)
      }
    },
  )

  test('quotes names of config files', () => {
    const manifest = parse(writeManifest('request', '', 'true', { namespace: 'a: b', name: '"><b>\n- x' }) ?? '') as Record<string, unknown>
    expect([manifest['metadata'], leaves(manifest['spec'])]).toEqual([{ name: 'example', namespace: 'a: b' }, expect.arrayContaining(['"><b>\n- x'])])
  })

  test('exists only for phases of route and Gateway policies', () => {
    expect(writeManifest('network', '', 'true', gateway)).toBeUndefined()
  })
})

const leaves = (value: unknown): unknown[] => (typeof value === 'object' && value !== null ? Object.values(value).flatMap(leaves) : [value])
