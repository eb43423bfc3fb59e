import { expect, test } from '@jest/globals'
import { fc } from '#api/property-testing.ts'
import { runSync } from '../../../runtime/cooperative.ts'
import { parseJson, type JsonObject } from './json.ts'
import { findAmbiguousMember } from './members.ts'
import { withMeta } from './modern.ts'
import { parseClientMessage, type RpcMessage } from './rpc.ts'
import { spliceMeta } from './splice.ts'

const META: JsonObject = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'a"}}\\', version: '\u2028' },
}
const META_TEXT = JSON.stringify(META)

const splice = (text: string): string | undefined => spliceMeta(text, runSync(parseClientMessage(Buffer.from(text), false)).message, META_TEXT)

test.each([
  ['a call', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"b":[{}]}}}'],
  ['spaces', '{ "jsonrpc" : "2.0", "id":1,\n"method":"x", "params" : {"name":"a" \t}}'],
  ['braces and quotes in strings', String.raw`{"jsonrpc":"2.0","id":"}}","method":"x","params":{"a":"}}\",\"_meta\":{}"}}`],
  ['_meta in arguments', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"arguments":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1"}}}}'],
  ['characters outside Latin-1 and escapes', String.raw`{"jsonrpc":"2.0","id":1,"method":"x","params":{"é😀":"\ud800","\u0000":"\u005c"}}`],
  ['numbers that a double cannot hold', '{"jsonrpc":"2.0","id":18446744073709551615,"method":"x","params":{"a":1.0,"1":-0}}'],
  ['a member __proto__', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"__proto__":{"_meta":1}}}'],
  ['arguments of 1 MB', `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"${'}'.repeat(1_000_000)}"}}`],
])('metadata is added to a text with %s', (_, text) => {
  const spliced = splice(text)
  expect(spliced).toContain(text.slice(0, -2))
  expect(JSON.stringify(parseJson(spliced ?? '')) === withMeta(text, META)).toBe(true)
})

test.each([
  ['no params', '{"jsonrpc":"2.0","id":1,"method":"x"}'],
  ['empty params', '{"jsonrpc":"2.0","id":1,"method":"x","params":{}}'],
  ['_meta', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{},"a":1}}'],
  ['an escaped _meta', String.raw`{"jsonrpc":"2.0","id":1,"method":"x","params":{"\u005fmeta":{},"a":1}}`],
  ['params before other members', '{"jsonrpc":"2.0","params":{"a":1},"id":1,"method":"x"}'],
  ['a member whose name is a number after params', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"1":{}}'],
  ['an unknown member after params', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"other":{}}'],
  ['__proto__ after params', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"__proto__":{}}'],
  ['a space after params', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1} }'],
  ['a line break at its end', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1}}\n'],
])('metadata is not added to a text with %s', (_, text) => {
  expect(splice(text)).toBeUndefined()
})

test.each([
  ['params', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"params":{"b":1}}'],
  ['escaped params', String.raw`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1},"p\u0061rams":{"b":1}}`],
  ['_meta', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"a":1},"_meta":{"b":1}}}'],
])('a text with %s twice is rejected before', (_, text) => {
  expect(() => splice(text)).toThrow('twice or in another spelling')
})

test('a text with metadata has the content that parsing and serializing gives', () => {
  const name = fc.constantFrom('jsonrpc', 'id', 'method', 'params', '_meta', '1', '__proto__', 'x}}', '\\"', 'é')
  const object = fc.array(fc.tuple(name, fc.jsonValue({ maxDepth: 2 })), { maxLength: 4 })
  const space = fc.constantFrom('', ' ', '\n')
  let spliced = 0
  fc.assert(
    fc.property(object, object, space, space, (others, params, inner, outer) => {
      const members = (entries: readonly (readonly [string, string])[]): string => entries.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')
      const inParams = params.map(([key, value]) => [key, JSON.stringify(value)] as const)
      const text = `{${members([...others.map(([key, value]) => [key, JSON.stringify(value)] as const), ['params', `{${members(inParams)}${inner}}`]])}${outer}}`
      if (runSync(findAmbiguousMember(text, false)) !== undefined) return
      const result = spliceMeta(text, parseJson(text) as RpcMessage, META_TEXT)
      if (result === undefined) return
      spliced++
      expect(JSON.stringify(parseJson(result))).toBe(withMeta(text, META))
    }),
    { numRuns: 3000 },
  )
  expect(spliced).toBeGreaterThan(50)
})
