import { describe, expect, test } from '@jest/globals'
import type { ExpressionCatalog } from '#api/management/expressions.ts'
import { complete, listEntries } from './completion.ts'

const catalog: ExpressionCatalog = {
  variables: [
    { name: 'request.path', type: 'string', description: '', phases: ['request', 'log'] },
    { name: 'response.code', type: 'int', description: '', phases: ['log'] },
    { name: 'jwt.<claim>', type: 'any', description: '', phases: ['request'] },
  ],
  functions: [
    { name: 'startsWith', isMethod: true, signature: 'x.startsWith(text)', description: '' },
    { name: 'size', isMethod: false, signature: 'size(v)', description: '' },
  ],
}

const labels = (before: string, phase = 'request'): string[] => complete(listEntries(catalog, phase), before).found.map(({ label }) => label)

describe('the completion of expressions', () => {
  test('offers variables of the phase', () => {
    expect(labels('a == re')).toEqual(['request.path'])
    expect(labels('re', 'log')).toEqual(['request.path', 'response.code'])
  })

  test('offers methods after a dot, functions elsewhere', () => {
    expect(labels('request.path.st')).toEqual(['x.startsWith(text)'])
    expect(labels('si')).toEqual(['size(v)'])
    expect(labels('1 + ')).toEqual([])
  })

  test('replaces the whole word', () => {
    expect(complete(listEntries(catalog, 'request'), '!request.pa').word).toBe('request.pa')
    expect(complete(listEntries(catalog, 'request'), 'x.starts').word).toBe('.starts')
  })
})
