import { describe, expect, test } from '@jest/globals'
import { fromBinary, fromJson, toBinary, toJson, type DescMessage, type JsonObject, type JsonValue } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { compileGrpcTools, linkFiles } from '#api/grpc-tools/index.ts'
import type { Cooperative } from '../../../runtime/cooperative.ts'
import { decodeInSteps, fromJsonInSteps, toJsonInSteps } from './steps.ts'

const field = (name: string, number: number, type: string, more: JsonObject = {}) => ({
  name,
  number,
  jsonName: name,
  label: 'LABEL_OPTIONAL',
  ...(type.startsWith('.') ? { type: 'TYPE_MESSAGE', typeName: type } : { type: `TYPE_${type}` }),
  ...more,
})
const repeated = { label: 'LABEL_REPEATED' }

/** A message with fields of all kinds, and of its own type. */
const file: JsonObject = {
  name: 'shop.proto',
  package: 'shop',
  syntax: 'proto3',
  dependency: ['struct', 'wrappers', 'timestamp'].map((name) => `google/protobuf/${name}.proto`),
  messageType: [
    {
      name: 'Node',
      field: [
        field('text', 1, 'STRING'),
        field('numbers', 2, 'INT64', repeated),
        field('children', 3, '.shop.Node', repeated),
        field('child', 4, '.shop.Node'),
        field('named', 5, '.shop.Node.NamedEntry', repeated),
        field('one', 6, '.shop.Node', { oneofIndex: 0 }),
        field('other', 7, 'INT32', { oneofIndex: 0 }),
        field('struct', 8, '.google.protobuf.Struct'),
        field('wrapped', 9, '.google.protobuf.StringValue'),
        field('times', 10, '.google.protobuf.Timestamp', repeated),
      ],
      oneofDecl: [{ name: 'choice' }],
      nestedType: [{ name: 'NamedEntry', field: [field('key', 1, 'STRING'), field('value', 2, '.shop.Node')], options: { mapEntry: true } }],
    },
  ],
  service: [{ name: 'Shop', method: [{ name: 'Echo', inputType: '.shop.Node', outputType: '.shop.Node' }] }],
}
const [tool] = compileGrpcTools(linkFiles([fromJson(FileDescriptorProtoSchema, file)]), {}).tools
const Node = tool?.method.input as DescMessage

/** Runs work, and returns its result and its number of steps. */
function run<Result>(work: Cooperative<Result>): { result: Result; steps: number } {
  for (let steps = 1; ; steps++) {
    const step = work.next()
    if (step.done === true) return { result: step.value, steps }
  }
}

const many = (count: number, make: (index: number) => JsonValue = () => ({})): JsonValue[] => Array.from({ length: count }, (_, index) => make(index))
const small = (index: number): JsonObject => ({ text: String(index), other: index, numbers: ['7'] })
const large = { children: many(9000, small), text: 'x' }

const messages: [what: string, json: JsonObject][] = [
  ['a list', large],
  ['a list within a message', { text: 'a', child: { child: large, other: 1 } }],
  ['a list within an item of a list', { children: [{ text: 'first' }, large, small(1), { child: large }] }],
  ['a message that is one of several', { one: large }],
  ['a map', { named: Object.fromEntries(many(9000, small).map((value, index) => [`key${index}`, value])) }],
  ['numbers', { numbers: many(30_000, String) }],
  ['values with a form of their own', { struct: { list: many(20_000, String) }, wrapped: 'x'.repeat(20_000), times: many(5000, () => '2023-11-14T22:13:20Z') }],
]

describe('messages in steps', () => {
  test.each([['a small message', small(1)] as [string, JsonObject], ...messages])('are the same as at once: %s', (_, json) => {
    const expected = fromJson(Node, json)
    expect(run(fromJsonInSteps(Node, json, (part) => part, {})).result).toEqual(expected)
    const bytes = toBinary(Node, expected)
    const seen = new Set<unknown>()
    const { result: message } = run(decodeInSteps(Node, bytes, seen))
    expect(message).toEqual(fromBinary(Node, bytes))
    const { result } = run(toJsonInSteps(Node, message, seen, {}))
    expect(JSON.stringify(result)).toBe(JSON.stringify(toJson(Node, expected, { alwaysEmitImplicit: true })))
  })

  test.each(messages.slice(0, 3))('have pauses: %s', (_, json) => {
    const bytes = toBinary(Node, fromJson(Node, json))
    const seen = new Set<unknown>()
    const decoded = run(decodeInSteps(Node, bytes, seen))
    const written = run(toJsonInSteps(Node, decoded.result, seen, {}))
    const counts = [run(fromJsonInSteps(Node, json, (part) => part, {})), decoded, written].map(({ steps }) => steps)
    expect(Math.min(...counts)).toBeGreaterThan(8)
  })

  test('merge a message that comes in parts', () => {
    const bytes = Buffer.concat([large, { children: [small(1)], text: 'y' }].map((child) => toBinary(Node, fromJson(Node, { child }))))
    expect(run(decodeInSteps(Node, bytes, new Set())).result).toEqual(fromBinary(Node, bytes))
  })

  test.each<[problem: string, json: JsonObject]>([
    ['an unknown field', { ...large, more: 1 }],
    ['a wrong type', { children: [...large.children, { text: 1 }] }],
    ['two of several alternatives', { ...large, one: {}, other: 1 }],
    ['an item that is null', { children: [...large.children, null] }],
  ])('are rejected as at once: %s', (_, json) => {
    const messageOf = (work: () => unknown): string => {
      try {
        work()
        return ''
      } catch (error) {
        return (error as Error).message
      }
    }
    const expected = messageOf(() => fromJson(Node, json))
    expect(expected).not.toBe('')
    expect(messageOf(() => run(fromJsonInSteps(Node, json, (part) => part, {})))).toBe(expected)
  })

  test('of many levels do not exceed the stack', () => {
    let bytes: Uint8Array = toBinary(Node, fromJson(Node, { text: 'x'.repeat(200_000) }))
    const wrap = (inner: Uint8Array): Uint8Array => {
      const head: number[] = [0x22]
      for (let length = inner.length; ; length >>>= 7) {
        head.push((length & 0x7f) | (length > 0x7f ? 0x80 : 0))
        if (length <= 0x7f) break
      }
      return Buffer.concat([Buffer.from(head), inner])
    }
    for (let level = 0; level < 200; level++) bytes = wrap(bytes)
    expect(() => run(decodeInSteps(Node, bytes, new Set()))).toThrow('maximum recursion depth')
  })
})
