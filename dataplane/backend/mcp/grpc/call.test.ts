import { describe, expect, test } from '@jest/globals'
import { fromBinary, fromJson, toBinary, toJson, type JsonObject, type JsonValue } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt'
import { compileGrpcTools, linkFiles } from '#api/grpc-tools/index.ts'
import { parseJson } from '../message/json.ts'
import { runSync, type Cooperative } from '../../../runtime/cooperative.ts'
import { callMethod } from './call.ts'
import { GrpcStatusError } from './unary.ts'

const field = (name: string, number: number, type: string) => ({ name, number, jsonName: name, label: 'LABEL_OPTIONAL', type: `TYPE_${type}` })
const numbers = [field('price', 1, 'DOUBLE'), field('count', 2, 'INT32'), field('id', 3, 'INT64'), field('size', 4, 'UINT64')]

/** A method from a message to itself. */
function methodOf(type: string) {
  const file: JsonObject = {
    name: 'shop.proto',
    package: 'shop',
    syntax: 'proto3',
    dependency: ['wrappers', 'timestamp', 'struct', 'duration', 'empty'].map((name) => `google/protobuf/${name}.proto`),
    messageType: [{ name: 'Numbers', field: numbers }],
    service: [{ name: 'Shop', method: [{ name: 'Echo', inputType: type, outputType: type }] }],
  }
  const registry = linkFiles([fromJson(FileDescriptorProtoSchema, file)])
  const [tool] = compileGrpcTools(registry, {}).tools
  if (tool === undefined) throw new Error('no tool')
  return { tool, tools: { tools: new Map(), list: '', registry } }
}

/** Calls the method with arguments in JSON. The server returns what it received. */
async function echo(
  type: string,
  args: string,
  run?: Parameters<typeof callMethod>[4],
): Promise<{ received: JsonValue | undefined; result: Record<string, unknown> }> {
  const { tool, tools } = methodOf(type)
  const { input } = tool.method
  let received: JsonValue | undefined
  const text = await callMethod(
    async (_, frames) => {
      const message = fromBinary(input, frames.subarray(5))
      received = toJson(input, message)
      return [Buffer.from(toBinary(input, message))]
    },
    tool,
    tools,
    parseJson(args),
    run,
  )
  return { received, result: JSON.parse(text) as Record<string, unknown> }
}

describe('arguments of a gRPC method', () => {
  test('are read as numbers however they are written', async () => {
    expect((await echo('.shop.Numbers', '{"price":5.0,"count":1e2,"id":2.0}')).received).toEqual({ price: 5, count: 100, id: '2' })
  })

  test('keep integers of 64 bits', async () => {
    const { received } = await echo('.shop.Numbers', '{"id":-9007199254740993,"size":18446744073709551615}')
    expect(received).toEqual({ id: '-9007199254740993', size: '18446744073709551615' })
  })

  test.each<[type: string, value: JsonValue]>([
    ['StringValue', 'tea'],
    ['BoolValue', false],
    ['UInt64Value', '7'],
    ['Timestamp', '2023-11-14T22:13:20Z'],
    ['Duration', '1.500s'],
    ['Value', [1, 'x']],
    ['ListValue', [true, null]],
  ])('are the member value for google.protobuf.%s, and the result is text', async (type, value) => {
    const { received, result } = await echo(`.google.protobuf.${type}`, JSON.stringify({ value }))
    expect(received).toEqual(value)
    expect(result).toEqual({ content: [{ type: 'text', text: JSON.stringify(value) }] })
  })

  test.each([
    ['Empty', {}],
    ['Struct', { a: { b: 1 } }],
  ])('are the message itself for google.protobuf.%s', async (type, value) => {
    const { result } = await echo(`.google.protobuf.${type}`, JSON.stringify(value))
    expect(result).toMatchObject({ structuredContent: value })
  })

  test.each([
    ['{}', 'Invalid arguments: arguments.value is required'],
    ['{"value":"x","more":1}', 'Invalid arguments: arguments.more is unknown: the only argument is value'],
  ])('%s for a bare value is an error of the tool', async (args, text) => {
    const { received, result } = await echo('.google.protobuf.StringValue', args)
    expect(received).toBeUndefined()
    expect(result).toEqual({ content: [{ type: 'text', text }], isError: true })
  })
})

test('large arguments and results are printed in steps', async () => {
  const steps: number[] = []
  const count = <Result>(work: Cooperative<Result>): Promise<Result> => {
    const at = steps.push(0) - 1
    const counted = function* (): Cooperative<Result> {
      for (let step = work.next(); ; step = work.next()) {
        if (step.done === true) return step.value
        steps[at] = (steps[at] ?? 0) + 1
        yield
      }
    }
    return Promise.resolve(runSync(counted()))
  }
  const value = { list: Array.from({ length: 20_000 }, (_, index) => index) }
  const { result } = await echo('.google.protobuf.Struct', JSON.stringify(value), count)
  expect(result).toEqual({ content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value })
  expect(steps).toHaveLength(2)
  expect(Math.min(...steps)).toBeGreaterThan(30)
})

test('the text of a gRPC error is not cut within a character', async () => {
  const { tool, tools } = methodOf('.shop.Numbers')
  const failed = () => Promise.reject(new GrpcStatusError(5, `${'x'.repeat(1999)}\u{1f600}`))
  const { content } = JSON.parse(await callMethod(failed, tool, tools, {})) as { content: { text: string }[] }
  expect(content[0]?.text).toBe(`NOT_FOUND: ${'x'.repeat(1999)}\ufffd...`)
})
