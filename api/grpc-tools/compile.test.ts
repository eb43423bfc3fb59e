import { describe, expect, test } from '@jest/globals'
import { fromJson, toBinary, type JsonObject } from '@bufbuild/protobuf'
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { compileGrpcTools, DescriptorError, linkFiles, readDescriptor, readDescriptorSet, type GrpcSelection } from './index.ts'

const field = (name: string, number: number, type: string, more: JsonObject = {}) => ({
  name,
  number,
  type: `TYPE_${type}`,
  label: 'LABEL_OPTIONAL',
  jsonName: name,
  ...more,
})
const message = (name: string, ...fields: JsonObject[]) => ({ name, field: fields })
const method = (name: string, more: JsonObject = {}) => ({ name, inputType: '.shop.v1.Item', outputType: '.shop.v1.Item', ...more })

const shop = (more: JsonObject = {}) =>
  fromJson(FileDescriptorProtoSchema, {
    name: 'shop.proto',
    package: 'shop.v1',
    syntax: 'proto3',
    dependency: ['google/protobuf/timestamp.proto'],
    messageType: [
      {
        ...message(
          'Item',
          field('id', 1, 'INT64'),
          field('count', 2, 'INT32', { label: 'LABEL_REPEATED' }),
          field('color', 3, 'ENUM', { typeName: '.shop.v1.Color' }),
          field('at', 4, 'MESSAGE', { typeName: '.google.protobuf.Timestamp' }),
          field('parts', 5, 'MESSAGE', { typeName: '.shop.v1.Item', label: 'LABEL_REPEATED' }),
          field('left', 6, 'STRING', { oneofIndex: 0 }),
          field('right', 7, 'BYTES', { oneofIndex: 0 }),
          field('tags', 8, 'MESSAGE', { typeName: '.shop.v1.Item.TagsEntry', label: 'LABEL_REPEATED' }),
        ),
        oneofDecl: [{ name: 'side' }],
        nestedType: [{ ...message('TagsEntry', field('key', 1, 'STRING'), field('value', 2, 'DOUBLE')), options: { mapEntry: true } }],
      },
    ],
    enumType: [
      {
        name: 'Color',
        value: [
          { name: 'NONE', number: 0 },
          { name: 'RED', number: 1 },
        ],
      },
    ],
    service: [
      {
        name: 'Carts',
        method: [
          method('Get', { options: { idempotencyLevel: 'NO_SIDE_EFFECTS' } }),
          method('Put', { options: { idempotencyLevel: 'IDEMPOTENT', deprecated: true } }),
          method('Watch', { serverStreaming: true }),
        ],
      },
    ],
    sourceCodeInfo: {
      location: [
        { path: [6, 0, 2, 0], leadingComments: ' Returns an item.\n' },
        { path: [4, 0, 2, 0], leadingComments: ' Number of the item.\n' },
      ],
    },
    ...more,
  })

const compile = (selection: GrpcSelection = {}, files = [shop()]) => compileGrpcTools(linkFiles(files), selection)
const definitionsOf = (selection?: GrpcSelection) => compile(selection).tools.map(({ definition }) => JSON.parse(definition) as Record<string, unknown>)

describe('tools of gRPC methods', () => {
  test('are those of unary methods, with hints and comments', () => {
    expect(definitionsOf()).toMatchObject([
      { name: 'Carts_Get', description: 'Returns an item.', annotations: { readOnlyHint: true } },
      { name: 'Carts_Put', description: 'Deprecated. shop.v1.Carts/Put', annotations: { readOnlyHint: false, idempotentHint: true } },
    ])
  })

  test('have schemas of ProtoJSON', () => {
    const [{ inputSchema, outputSchema } = {}] = definitionsOf()
    const properties = {
      id: { type: ['string', 'integer'], pattern: '^-?\\d+$', description: 'Number of the item.' },
      count: { type: 'array', items: { type: 'integer' } },
      color: { enum: ['NONE', 'RED'] },
      at: { type: 'string', format: 'date-time' },
      parts: { type: 'array', items: { $ref: '#/$defs/shop.v1.Item' } },
      left: { type: 'string', description: 'Not together with right.' },
      right: { type: 'string', contentEncoding: 'base64', description: 'Not together with left.' },
      tags: { type: 'object', additionalProperties: { anyOf: [{ type: 'number' }, { enum: ['NaN', 'Infinity', '-Infinity'] }] } },
    }
    const item = { type: 'object', properties, additionalProperties: false }
    expect(inputSchema).toEqual({ ...item, $defs: { 'shop.v1.Item': item } })
    expect(outputSchema).toMatchObject({ properties: { color: { type: ['string', 'integer'], description: 'NONE, RED, or a number without a name' } } })
  })

  test.each<[GrpcSelection, string[]]>([
    [{ include: ['*/Get'] }, ['Carts_Get']],
    [{ include: ['shop.v1.*'], exclude: ['*/Put'] }, ['Carts_Get']],
    [{ exclude: ['shop?v1*'] }, ['Carts_Get', 'Carts_Put']],
  ])('are selected by %j', (selection, names) => {
    expect(compile(selection).tools.map(({ name }) => name)).toEqual(names)
  })

  test('take bare values of Protobuf as the argument value, and have no output schema for them', () => {
    const service = { name: 'Names', method: [method('Find', { inputType: '.google.protobuf.StringValue', outputType: '.google.protobuf.Timestamp' })] }
    const file = shop({ dependency: ['google/protobuf/timestamp.proto', 'google/protobuf/wrappers.proto'], service: [service] })
    const [tool] = compile({}, [file]).tools
    const definition = JSON.parse(tool?.definition ?? '') as Record<string, unknown>
    const value = { anyOf: [{ type: 'string' }, { type: 'null' }] }
    expect(definition['inputSchema']).toEqual({ type: 'object', properties: { value }, required: ['value'], additionalProperties: false })
    expect(definition).not.toHaveProperty('outputSchema')
  })

  test('have descriptions that are not cut within a character', () => {
    const leadingComments = `${'x'.repeat(1999)}\u{1f600}`
    const [tool] = compile({}, [shop({ sourceCodeInfo: { location: [{ path: [6, 0, 2, 0], leadingComments }] } })]).tools
    expect(JSON.parse(tool?.definition ?? '')).toMatchObject({ description: `${'x'.repeat(1999)}\ufffd` })
  })

  test('report patterns without effect', () => {
    expect(compile({ include: ['*/Watch', '*/Get'], exclude: ['x'] }).problems).toEqual([
      'include "*/Watch" matches no unary method',
      'exclude "x" matches no unary method',
    ])
    expect(compile({ exclude: ['*'] }).problems).toEqual(['it has no unary method that is selected'])
  })

  test('have distinct names in services of one name, whatever their order, and at most 64 characters', () => {
    const other = fromJson(FileDescriptorProtoSchema, {
      name: 'other.proto',
      package: 'other',
      syntax: 'proto3',
      dependency: ['shop.proto'],
      service: [{ name: 'Carts', method: [method('Get'), method('G'.repeat(80))] }],
    })
    const names = (files: Parameters<typeof linkFiles>[0]) =>
      compile({}, [...files])
        .tools.map(({ name }) => name)
        .toSorted()
    expect(names([shop(), other])).toEqual(names([other, shop()]))
    expect(new Set(names([shop(), other])).size).toBe(4)
    for (const name of names([shop(), other])) expect(name).toMatch(/^[A-Za-z0-9_]{1,64}$/)
  })
})

describe('a descriptor set', () => {
  const set = (...file: ReturnType<typeof shop>[]) => toBinary(FileDescriptorSetSchema, { $typeName: 'google.protobuf.FileDescriptorSet', file })

  test('may lack the files of the Protobuf runtime, in any order', () => {
    expect(compile({}, readDescriptorSet(set(shop()))).tools).toHaveLength(2)
  })

  test('may have relative names and no names in JSON, as those of protobuf.js', () => {
    const file = fromJson(FileDescriptorProtoSchema, {
      name: 'a.proto',
      package: 'a.b',
      syntax: 'proto3',
      messageType: [{ ...message('In', field('item_id', 1, 'MESSAGE', { typeName: 'Out', jsonName: '' })), nestedType: [message('Out')] }, message('Out')],
      service: [{ name: 'S', method: [{ name: 'M', inputType: 'In', outputType: 'b.Out' }] }],
    })
    const [tool] = compile({}, [file]).tools
    expect(JSON.parse(tool?.definition ?? '')).toMatchObject({ inputSchema: { properties: { itemId: { $ref: '#/$defs/a.b.In.Out' } } } })
    expect(tool?.method.output.typeName).toBe('a.b.Out')
  })

  test.each<[string, () => unknown, RegExp]>([
    ['without files', () => readDescriptorSet(new Uint8Array()), /it has no files/],
    ['that is no Protobuf', () => readDescriptorSet(Buffer.from('syntax = "proto3";')), /it is no descriptor set/],
    ['that is too large', () => readDescriptorSet(Buffer.alloc(2 ** 21)), /at most 1048576/],
    ['with a file that is no Protobuf', () => readDescriptor(Buffer.from([255])), /it is no descriptor set/],
    ['without an imported file', () => linkFiles([shop({ dependency: ['missing.proto'] })]), /imports "missing.proto", which is missing/],
    ['with a circle of imports', () => linkFiles([shop({ dependency: ['shop.proto'] })]), /lead back to it/],
    ['with an unknown type', () => linkFiles([shop({ dependency: [] })]), /cannot be linked/],
  ])('%s is an error that names the problem', (_, read, text) => {
    expect(read).toThrow(DescriptorError)
    expect(read).toThrow(text)
  })
})
