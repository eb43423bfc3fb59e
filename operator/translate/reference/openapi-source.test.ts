import { describe, expect, test } from '@jest/globals'
import { gzipSync } from 'node:zlib'
import type { ConfigMap } from '../../source/objects.ts'
import { readOpenApi } from './openapi-source.ts'

const text = JSON.stringify({ openapi: '3.1.0', paths: { '/a': { get: {} }, '/b': { get: {} } } })
const mapOf = (content: Pick<ConfigMap, 'data' | 'binaryData'>): ConfigMap =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'ns', name: 'm' }, ...content }) as Partial<ConfigMap> as ConfigMap
const namesOf = (source: ReturnType<typeof readOpenApi>) =>
  source !== undefined && 'message' in source ? source.message.tools.map(({ name }) => name) : source

describe('readOpenApi', () => {
  test.each([
    ['data', { data: { key: text } }],
    ['binaryData', { binaryData: { key: Buffer.from(text).toString('base64') } }],
    ['binaryData, compressed with gzip', { binaryData: { key: gzipSync(text).toString('base64') } }],
  ])('reads a key of %s', (_, content) => expect(namesOf(readOpenApi(mapOf(content), 'key', {}))).toEqual(['get_a', 'get_b']))

  test.each(['other', 'toString', '__proto__'])('does not find the key %s', (key) =>
    expect(readOpenApi(mapOf({ data: { key: text } }), key, {})).toBeUndefined(),
  )

  test('compiles a document once for each object and settings', () => {
    const map = mapOf({ data: { key: text } })
    const first = readOpenApi(map, 'key', {})
    const selected = readOpenApi(map, 'key', { include: [{ path: 'GET /a' }] })
    expect(readOpenApi(map, 'key', {})).toBe(first)
    expect(namesOf(selected)).toEqual(['get_a'])
    expect(readOpenApi(mapOf({ data: { key: text } }), 'key', {})).not.toBe(first)
  })

  test('returns why a document is unusable', () => {
    expect(readOpenApi(mapOf({ data: { key: '[]' } }), 'key', {})).toEqual({ broken: 'it is not an object' })
    expect(readOpenApi(mapOf({ binaryData: { key: 'H4sIAAAA' } }), 'key', {})).toEqual({ broken: 'it does not decompress' })
  })
})
