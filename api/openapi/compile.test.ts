import { describe, expect, test } from '@jest/globals'
import { gzipSync } from 'node:zlib'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { compileOpenApi, type CompiledOpenApi } from './compile.ts'
import { DocumentError, OpenApiDocument, parseDocument } from './document.ts'

type Settings = Parameters<typeof compileOpenApi>[1]
interface Definition {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema: Record<string, unknown>
  readonly outputSchema?: Record<string, unknown>
  readonly annotations: object
}

const compile = (paths: object, settings: Settings = {}, more: object = {}): CompiledOpenApi =>
  compileOpenApi(parseDocument(Buffer.from(JSON.stringify({ openapi: '3.1.0', info: { title: 'API', version: '1' }, paths, ...more }))), settings)
const definitions = ({ message }: CompiledOpenApi): Definition[] => message.tools.map(({ definition }) => JSON.parse(definition) as Definition)
const namesOf = ({ message }: CompiledOpenApi): string[] => message.tools.map(({ name }) => name)
const only = (paths: object, settings: Settings = {}, more: object = {}): Definition => definitions(compile(paths, settings, more))[0] as Definition
const query = (schema: object, more: object = {}) => ({ name: 'q', in: 'query', schema, ...more })
/** The schema of a query parameter, converted. */
const input = (schema: object, more: object = {}): unknown =>
  (only({ '/x': { get: { parameters: [query(schema)] } } }, {}, more).inputSchema['properties'] as { readonly q: unknown }).q
const jsonContent = (schema: object) => ({ content: { 'application/json': { schema } } })
const output = (schema: object, more: object = {}) => only({ '/x': { get: { responses: { 200: jsonContent(schema) } } } }, {}, more).outputSchema

describe('parseDocument', () => {
  test.each([
    ['JSON', '{"openapi":"3.0.3","paths":{}}'],
    ['YAML', 'openapi: 3.1.1\npaths: {}\n'],
    ['JSON with a byte order mark', '\ufeff{"openapi":"3.0.3","paths":{}}'],
    ['YAML with a byte order mark', '\ufeffopenapi: 3.1.1\npaths: {}\n'],
  ])('reads %s', (_, text) => expect(parseDocument(Buffer.from(text)).root['paths']).toEqual({}))

  test('decompresses gzip', () => expect(parseDocument(gzipSync('{"openapi":"3.0.3","paths":{}}')).isVersion30).toBe(true))

  test.each([
    ['text that is neither JSON nor YAML', '{"openapi"', 'it is neither JSON nor YAML'],
    ['a list', '[]', 'it is not an object'],
    ['Swagger 2.0', '{"swagger":"2.0","paths":{}}', 'it is of version 2.0; convert it to OpenAPI 3.0 or 3.1'],
    ['a document without version', '{"paths":{}}', 'it has no field openapi'],
    ['OpenAPI 4', '{"openapi":"4.0.0","paths":{}}', 'version 4.0.0 is not supported'],
    ['a document without paths', '{"openapi":"3.0.0"}', 'it has no paths'],
    ['nesting without end', `{"openapi":"3.0.0","paths":${'['.repeat(200_000)}`, 'it is neither JSON nor YAML'],
    [
      'aliases that multiply',
      `l0: &l0 [x]\n${Array.from({ length: 9 }, (_, level) => `l${level + 1}: &l${level + 1} [${`*l${level},`.repeat(9)}]`).join('\n')}`,
      'neither JSON nor YAML',
    ],
  ])('rejects %s', (_, text, message) => expect(() => parseDocument(Buffer.from(text))).toThrow(message))

  test('rejects documents that are too large after decompression', () => {
    expect(() => parseDocument(gzipSync(Buffer.alloc(17 * 1024 * 1024, ' ')))).toThrow('it is larger than 16 MiB')
    expect(() => parseDocument(Buffer.alloc(17 * 1024 * 1024, ' '))).toThrow(DocumentError)
  })
})

describe('names of tools', () => {
  test('are operationIds, or methods and paths, within the characters of LLM APIs', () => {
    const paths = {
      '/pets': { get: { operationId: 'pets/list all' }, post: {} },
      '/pets/{id}': { delete: { parameters: [{ name: 'id', in: 'path', schema: {} }] } },
    }
    expect(namesOf(compile(paths))).toEqual(['pets_list_all', 'post_pets', 'delete_pets_id'])
  })

  test('longer than 64 characters end in a digest', () => {
    const [name = ''] = namesOf(compile({ '/x': { get: { operationId: 'a'.repeat(70) } } }))
    expect(name).toMatch(/^a{55}_[0-9a-f]{8}$/)
  })

  test('that two operations share become distinct, whatever the order is', () => {
    const a = { '/a': { get: { operationId: 'x.y' } } }
    const b = { '/b': { get: { operationId: 'x/y' } } }
    const [first, second] = namesOf(compile({ ...a, ...b }))
    expect([first, second]).toEqual([expect.stringMatching(/^x_y_[0-9a-f]{8}$/), expect.stringMatching(/^x_y_[0-9a-f]{8}$/)])
    expect(namesOf(compile({ ...b, ...a }))).toEqual([second, first])
  })

  test('can be set by operationId or by method and path', () => {
    const paths = { '/a': { get: { operationId: 'x' }, post: {} } }
    const { message, problems } = compile(paths, { rename: { x: 'first', 'POST /a': 'second', 'GET /b': 'third' } })
    expect(message.tools.map(({ name }) => name)).toEqual(['first', 'second'])
    expect(problems).toEqual(['rename has GET /b, which is no operation that is selected'])
  })
})

describe('selection of operations', () => {
  const paths = {
    '/pets': { get: { operationId: 'listPets', tags: ['pets'] }, post: { operationId: 'createPet', tags: ['pets', 'write'] } },
    '/pets/{id}/toys': { get: { operationId: 'listToys', tags: ['toys'], parameters: [{ name: 'id', in: 'path', schema: {} }] } },
    '/admin': { delete: { operationId: 'wipe' } },
  }
  test.each([
    [{ include: [{ operationId: 'list*' }] }, ['listPets', 'listToys']],
    [{ include: [{ tag: 'pets' }] }, ['listPets', 'createPet']],
    [{ include: [{ tag: 'pets', path: 'GET /**' }] }, ['listPets']],
    [{ include: [{ path: '* /pets' }, { operationId: 'wipe' }] }, ['listPets', 'createPet', 'wipe']],
    [{ include: [{ path: 'GET /pets/*' }] }, []],
    [{ include: [{ path: 'GET /pets/*/toys' }] }, ['listToys']],
    [{ exclude: [{ path: 'DELETE /**' }, { tag: 'w*' }] }, ['listPets', 'listToys']],
    [{ include: [{ tag: 'pets' }], exclude: [{ operationId: 'createPet' }] }, ['listPets']],
  ])('%j selects the operations that match', (settings, names) => expect(namesOf(compile(paths, settings))).toEqual(names))

  test('reports entries that match no operation', () => {
    expect(compile(paths, { include: [{ tag: 'pets' }, { tag: 'none' }], exclude: [{ operationId: 'x' }] }).problems).toEqual([
      'include.1 matches no operation',
      'exclude.0 matches no operation',
    ])
  })

  test('takes linear time for patterns with many wildcards', () => {
    const path = `/${'a'.repeat(900)}`
    expect(namesOf(compile({ [path]: { get: {} } }, { include: [{ path: `GET /${'*a'.repeat(200)}b` }] }))).toEqual([])
  })

  test('rejects more operations than the limit', () => {
    const many = Object.fromEntries(Array.from({ length: 2001 }, (_, index) => [`/x${index}`, { get: {} }]))
    expect(() => compile(many)).toThrow('2001 operations are selected, at most 2000 can be tools; select fewer with include')
    expect(compile(many, { include: [{ path: 'GET /x1' }] }).message.tools).toHaveLength(1)
  })
})

describe('tools', () => {
  test('have title, description and hints of the operation', () => {
    const tool = only({ '/a': { get: { summary: 'Lists', description: 'Lists all.', deprecated: true } } })
    expect(tool).toMatchObject({ name: 'get_a', title: 'Lists', description: 'Deprecated. Lists\n\nLists all.', annotations: { readOnlyHint: true } })
  })

  test.each([
    ['get', { readOnlyHint: true }],
    ['put', { readOnlyHint: false, idempotentHint: true }],
    ['delete', { readOnlyHint: false, destructiveHint: true, idempotentHint: true }],
    ['post', { readOnlyHint: false }],
    ['patch', { readOnlyHint: false }],
  ])('of %s have the hints of that method', (method, annotations) => expect(only({ '/a': { [method]: {} } }).annotations).toEqual(annotations))

  test('have descriptions that are not cut within a character', () => {
    const description = `${'x'.repeat(1996)}\u{1f600}yyyy`
    expect(only({ '/x': { get: { description } } }).description).toBe(`${'x'.repeat(1996)}\ufffd...`)
  })

  test('have parameters of path and operation and the body as arguments', () => {
    const paths = {
      '/a/{id}': {
        parameters: [
          { name: 'id', in: 'path', required: true, schema: { type: 'integer' } },
          { name: 'q', in: 'query', description: 'of the path', schema: {} },
        ],
        post: {
          parameters: [{ $ref: '#/components/parameters/q' }, { name: 'X-Trace', in: 'header', schema: { type: 'string' } }],
          requestBody: { required: true, description: 'The pet', ...jsonContent({ $ref: '#/components/schemas/Pet' }) },
        },
      },
    }
    const components = {
      parameters: { q: { name: 'q', in: 'query', required: true, schema: { type: 'array', items: { type: 'string' } }, style: 'pipeDelimited' } },
      schemas: { Pet: { type: 'object', required: ['id', 'name'], properties: { id: { type: 'integer', readOnly: true }, name: { type: 'string' } } } },
    }
    const { message } = compile(paths, {}, { components })
    expect(JSON.parse(message.tools[0]?.definition ?? '')['inputSchema']).toEqual({
      type: 'object',
      properties: {
        id: { type: 'integer' },
        q: { type: 'array', items: { type: 'string' } },
        'X-Trace': { type: 'string' },
        body: { type: 'object', description: 'The pet', required: ['name'], properties: { name: { type: 'string' } } },
      },
      required: ['id', 'q', 'body'],
      additionalProperties: false,
    })
    expect(message.tools[0]).toMatchObject({
      method: 'POST',
      path: '/a/{id}',
      parameters: [
        { argument: 'id', name: 'id', in: 'path', style: 'simple', explode: false },
        { argument: 'q', name: 'q', in: 'query', style: 'pipeDelimited', explode: false },
        { argument: 'X-Trace', name: 'X-Trace', in: 'header', style: 'simple', explode: false },
      ],
      body: { argument: 'body', mediaType: 'application/json', kind: 'json' },
    })
  })

  test('send a parameter with content in JSON only if its type is JSON', () => {
    const parameter = (name: string, type: string) => ({ name, in: 'query', content: { [type]: { schema: {} } } })
    const types = ['application/json', 'application/vnd.x+json', '*/*', 'text/plain']
    const [tool] = compile({ '/x': { get: { parameters: types.map((type, index) => parameter(`q${index}`, type)) } } }).message.tools
    expect(tool?.parameters.map(({ isJson }) => isJson)).toEqual([true, true, true, undefined])
  })

  test('have no reserved headers and cookies as arguments', () => {
    const names = [
      'Authorization',
      'Accept',
      'content-type',
      'Host',
      'Transfer-Encoding',
      'X-Forwarded-For',
      'Mcp-Session-Id',
      'Proxy-Authorization',
      'a b',
      'a\r\nb',
    ]
    const parameters = [...names.map((name) => ({ name, in: 'header', schema: {} })), { name: 'sid', in: 'cookie', schema: {} }]
    expect(only({ '/a': { get: { parameters } } }).inputSchema['properties']).toEqual({})
  })

  test('have arguments with names that LLM APIs accept', () => {
    const parameters = [
      { name: 'filter[name]', in: 'query', schema: {} },
      { name: '$top', in: 'query', schema: {} },
      { name: 'id', in: 'query', schema: {} },
      { name: 'id', in: 'header', schema: {} },
      { name: 'body', in: 'query', schema: {} },
    ]
    const { message } = compile({ '/a': { post: { parameters, requestBody: jsonContent({}) } } })
    expect(message.tools[0]?.parameters.map(({ argument, name }) => [name, argument])).toEqual([
      ['filter[name]', 'filter_name'],
      ['$top', 'top'],
      ['id', 'id'],
      ['id', 'id_header'],
      ['body', 'body'],
    ])
    expect(message.tools[0]?.body?.argument).toBe('body_request')
  })

  test('choose JSON before forms before text for the body', () => {
    const bodyOf = (...types: string[]) =>
      compile({ '/a': { post: { requestBody: { content: Object.fromEntries(types.map((type) => [type, {}])) } } } }).message.tools[0]?.body
    expect(bodyOf('text/plain', 'application/x-www-form-urlencoded', 'application/vnd.api+json')).toMatchObject({
      kind: 'json',
      mediaType: 'application/vnd.api+json',
    })
    expect(bodyOf('text/plain', 'application/x-www-form-urlencoded')?.kind).toBe('form')
    expect(bodyOf('text/plain')).toMatchObject({ kind: 'text', mediaType: 'text/plain' })
    expect(bodyOf('*/*')).toMatchObject({ kind: 'json', mediaType: 'application/json' })
    expect(bodyOf('application/octet-stream')).toBeUndefined()
  })

  test.each([
    [
      'a body that is no text',
      { requestBody: { required: true, content: { 'image/png': {} } } },
      'its body is image/png, and JSON, a form or text is supported',
    ],
    [
      'a reference to another document',
      { parameters: [{ $ref: 'other.yaml#/x' }] },
      '$ref other.yaml#/x leads out of the document; bundle it into one document',
    ],
    ['a reference over the network', { parameters: [query({ $ref: 'http://169.254.169.254/x' })] }, '$ref http://169.254.169.254/x leads out of the document'],
    ['a reference to nothing', { parameters: [{ $ref: '#/components/x' }] }, '$ref #/components/x points to nothing'],
  ])('an operation with %s is no tool, and others are', (_, operation, problem) => {
    const { message, problems } = compile({ '/bad': { post: operation }, '/good': { get: {} } })
    expect(message.tools.map(({ name }) => name)).toEqual(['get_good'])
    expect(problems).toEqual([expect.stringContaining(`an operation is no tool: POST /bad (${problem}`)])
  })

  test('problems of many operations name the first ones', () => {
    const paths = Object.fromEntries(Array.from({ length: 5 }, (_, index) => [`/x${index}/{id}`, { get: {} }]))
    expect(compile(paths).problems).toEqual([expect.stringMatching(/^5 operations are no tool: GET \/x0\/\{id\} \(.*\), GET \/x1.*, GET \/x2.* and 2 more$/)])
  })
})

describe('hostile documents', () => {
  test('long names of parameters stay distinct', () => {
    const name = 'n'.repeat(64)
    const parameters = ['path', 'query', 'header'].map((place) => ({ name, in: place, schema: {} }))
    const others = ['[', ']', '(', ')'].map((char) => ({ name: `${name}${char}`, in: 'query', schema: {} }))
    const { message } = compile({ [`/{${name}}`]: { get: { parameters: [...parameters, ...others] } } })
    const names = message.tools[0]?.parameters.map(({ argument }) => argument) ?? []
    expect([names.length, new Set(names).size, names.every((one) => /^[a-zA-Z0-9_.-]{1,64}$/.test(one))]).toEqual([7, 7, true])
  })

  test('an operation with too many parameters is no tool', () => {
    const parameters = Array.from({ length: 501 }, (_, index) => ({ name: `p${index}`, in: 'query', schema: {} }))
    expect(compile({ '/x': { get: { parameters } } }).problems).toEqual([expect.stringContaining('it has 501 parameters, at most 500 are supported')])
  })

  test('a document with too many operations is unusable', () => {
    const paths = Object.fromEntries(Array.from({ length: 10_001 }, (_, index) => [`/x${index}`, { get: {} }]))
    expect(() => compile(paths, { include: [{ path: 'GET /x1' }] })).toThrow('it has 10001 operations, at most 10000 are supported')
  })

  test('a path that cannot be read leaves out its operations', () => {
    const { message, problems } = compile({ '/a': null, '/b': { $ref: 'https://h/x.json' }, '/c': { get: {} } })
    expect(message.tools.map(({ name }) => name)).toEqual(['get_c'])
    expect(problems).toEqual([expect.stringContaining('2 operations are no tool: /a (an object is expected), /b ($ref https://h/x.json leads out')])
  })

  test('combinations of combinations are looked at once', () => {
    const schemas = Object.fromEntries(
      Array.from({ length: 30 }, (_, index) => [`S${index}`, { allOf: Array.from({ length: 30 }, () => ({ $ref: `#/components/schemas/S${index + 1}` })) }]),
    )
    const components = { schemas: { ...schemas, S30: { description: 'x' } } }
    expect(output({ $ref: '#/components/schemas/S0' }, { components })).toBeUndefined()
  })

  test('a document in YAML has a lower limit', () => {
    expect(() => parseDocument(Buffer.from(`# ${'x'.repeat(2 * 1024 * 1024)}\nopenapi: 3.1.0`))).toThrow('it is YAML of more than 2 MiB; convert it to JSON')
  })

  test('the work for all schemas is bounded', () => {
    const properties = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`p${index}`, {}]))
    const parameters = Array.from({ length: 500 }, (_, index) => query({ properties }, { name: `q${index}` }))
    const paths = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`/x${index}`, { get: { parameters } }]))
    const { problems } = compileOpenApi(new OpenApiDocument({ openapi: '3.1.0', paths }), {})
    expect(problems).toEqual([expect.stringContaining('the schemas of all operations are too large; select fewer with include')])
  })
})

describe('schemas of arguments', () => {
  const v30 = { openapi: '3.0.3' }
  test.each([
    [
      { type: 'string', nullable: true, enum: ['a'] },
      { type: ['string', 'null'], enum: ['a', null] },
    ],
    [
      { type: 'integer', minimum: 1, exclusiveMinimum: true, maximum: 9, exclusiveMaximum: false },
      { type: 'integer', exclusiveMinimum: 1, maximum: 9 },
    ],
    [
      { allOf: [{ type: 'string' }], nullable: true, title: 'x' },
      { title: 'x', anyOf: [{ allOf: [{ type: 'string' }] }, { type: 'null' }] },
    ],
    [
      { allOf: [{ type: 'string', description: 'inner' }], description: 'outer', default: 'x' },
      { type: 'string', description: 'outer', default: 'x' },
    ],
    [
      { allOf: [{ type: 'string' }], type: 'string' },
      { allOf: [{ type: 'string' }], type: 'string' },
    ],
    [{ type: 'string', example: 'x', xml: {}, 'x-own': 1, externalDocs: {} }, { type: 'string' }],
  ])('of OpenAPI 3.0 become those of JSON Schema: %j', (schema, converted) => expect(input(schema, v30)).toEqual(converted))

  test('have references replaced by what they point to', () => {
    const components = { schemas: { A: { type: 'object', properties: { b: { $ref: '#/components/schemas/B' } } }, B: { type: 'string' } } }
    expect(input({ $ref: '#/components/schemas/A', description: 'D' }, { components })).toEqual({
      type: 'object',
      properties: { b: { type: 'string' } },
      description: 'D',
    })
  })

  test('keep recursive references as definitions', () => {
    const components = { schemas: { Tree: { type: 'object', properties: { children: { type: 'array', items: { $ref: '#/components/schemas/Tree' } } } } } }
    const { inputSchema } = only({ '/x': { get: { parameters: [query({ $ref: '#/components/schemas/Tree' })] } } }, {}, { components })
    expect(inputSchema).toMatchObject({
      properties: { q: { $ref: '#/$defs/Tree' } },
      $defs: { Tree: { type: 'object', properties: { children: { items: { $ref: '#/$defs/Tree' } } } } },
    })
    expect(new Ajv2020({ strict: false }).compile(inputSchema)({ q: { children: [{ children: 1 }] } })).toBe(false)
  })

  test('that would multiply keep their references as definitions', () => {
    const level = (index: number) => ({
      type: 'object',
      properties: { a: { $ref: `#/components/schemas/L${index + 1}` }, b: { $ref: `#/components/schemas/L${index + 1}` } },
    })
    const schemas = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`L${index}`, index === 59 ? { type: 'string' } : level(index)]))
    const { inputSchema } = only({ '/x': { get: { parameters: [query({ $ref: '#/components/schemas/L0' })] } } }, {}, { components: { schemas } })
    expect(Object.keys(inputSchema['$defs'] as object)).toHaveLength(60)
  })

  test('that are too large are left to the API', () => {
    const properties = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`property_${index}`, { type: 'string', description: 'x'.repeat(20) }]))
    const tool = only({ '/x': { post: { requestBody: { required: true, ...jsonContent({ type: 'object', properties }) } } } })
    expect(tool.inputSchema).toEqual({ type: 'object', properties: { body: {} }, required: ['body'], additionalProperties: false })
  })

  test('that refer to themselves only are no tool', () => {
    const components = { schemas: { A: { $ref: '#/components/schemas/A' } } }
    const { inputSchema } = only({ '/x': { get: { parameters: [query({ $ref: '#/components/schemas/A' })] } } }, {}, { components })
    expect(inputSchema['$defs']).toEqual({ A: { $ref: '#/$defs/A' } })
  })

  test('do not read inherited members', () => {
    expect(() => input({ $ref: '#/constructor' })).toThrow()
    expect(compile({ '/x': { get: { parameters: [query({ $ref: '#/__proto__' })] } } }).problems).toHaveLength(1)
  })
})

describe('schemas of results', () => {
  test('are those of responses that are objects, without what APIs break', () => {
    expect(
      output({ type: 'object', required: ['a'], additionalProperties: false, properties: { a: { type: 'string', format: 'uri', enum: ['x'], maxLength: 3 } } }),
    ).toEqual({
      type: 'object',
      properties: { a: { type: ['string', 'null'] } },
    })
  })

  test.each([
    ['an array', { 200: jsonContent({ type: 'array', items: {} }) }],
    ['text', { 200: { content: { 'text/plain': {} } } }],
    ['different objects', { 200: jsonContent({ type: 'object' }), 201: jsonContent({ type: 'object' }) }],
    ['errors only', { 404: jsonContent({ type: 'object' }) }],
    ['nothing', { 204: {} }],
  ])('do not exist for responses that are %s', (_, responses) => expect(only({ '/x': { get: { responses } } }).outputSchema).toBeUndefined())

  test('exist if some responses are empty', () => {
    expect(only({ '/x': { put: { responses: { '2XX': jsonContent({ type: 'object' }), 204: {} } } } }).outputSchema).toEqual({ type: 'object' })
  })

  test('that are recursive have the type object at the root', () => {
    const components = { schemas: { Node: { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' } } } } }
    expect(output({ $ref: '#/components/schemas/Node' }, { components })).toMatchObject({ type: 'object', allOf: [{ $ref: '#/$defs/Node' }] })
  })

  test('that are too large are left out', () => {
    const properties = Object.fromEntries(Array.from({ length: 450 }, (_, index) => [`property_${index}`, { type: 'string', description: 'x'.repeat(40) }]))
    expect(output({ type: 'object', properties })).toBeUndefined()
  })
})

describe('base path', () => {
  test.each([
    [[{ url: 'https://api.example.com/v1/' }], '/v1'],
    [[{ url: '/v2' }], '/v2'],
    [[{ url: 'https://{region}.example.com/{base}', variables: { base: { default: 'v3' } } }], '/v3'],
    [[{ url: 'mailto:x' }], ''],
    [[], ''],
    [undefined, ''],
  ])('of servers %j is the path of the first one', (servers, path) => expect(compile({}, {}, { servers }).message.path).toBe(path))

  const [api, files, uploads] = ['https://api.example.com/v1', 'https://api.example.com/files/', 'https://uploads.example.com/v1'].map((url) => ({ url }))
  const pathsOf = (paths: object, settings: Settings, servers: unknown) => {
    const { message, problems } = compile(paths, settings, { servers })
    return { paths: message.tools.map(({ path }) => `${message.path}${path}`), problems }
  }

  test.each<[where: string, item: object]>([
    ['a path', { get: {}, servers: [files] }],
    ['an operation', { get: { servers: [files] } }],
    ['an operation, which are stronger than those of its path', { get: { servers: [files] }, servers: [{ url: '/other' }] }],
    ['an operation with one on a host of the API', { get: { servers: [uploads, files] } }],
    ['a path, if those of the operation are an empty list', { get: { servers: [] }, servers: [{ url: '/{name}', variables: { name: { default: 'files' } } }] }],
  ])('is that of the servers of %s', (_, item) => {
    expect(pathsOf({ '/a': item, '/b': { get: {} } }, {}, [api])).toEqual({ paths: ['/files/a', '/v1/b'], problems: [] })
  })

  test.each([
    ['another host than those of the document', { '/a': { get: { servers: [uploads] } }, '/b': { get: {} } }, [api], ['/v1/b']],
    ['several hosts of a document without any', { '/a': { get: { servers: [uploads] } }, '/b': { get: {}, servers: [api] } }, [{ url: '/v1' }], []],
    ['no host', { '/a': { get: { servers: [{ url: 'mailto:x' }] } }, '/b': { get: {} } }, [api], ['/v1/b']],
  ])('of an operation with servers on %s does not exist: it is no tool', (_, paths, servers, expected) => {
    const { paths: found, problems } = pathsOf(paths, {}, servers)
    expect(found).toEqual(expected)
    expect(problems).toEqual([expect.stringContaining('GET /a (its servers are on another host than the API; openapi.path replaces all servers)')])
  })

  test('is that of the only host that operations name, if the document names none', () => {
    expect(pathsOf({ '/a': { get: {}, servers: [files] }, '/b': { get: {} } }, {}, undefined)).toEqual({ paths: ['/files/a', '/b'], problems: [] })
  })

  test('that is set holds for all operations', () => {
    expect(pathsOf({ '/a': { get: { servers: [uploads] } }, '/b': { get: {} } }, { path: '/own' }, [api])).toEqual({
      paths: ['/own/a', '/own/b'],
      problems: [],
    })
  })

  test('can be set', () => expect(compile({}, { path: '/own/' }, { servers: [{ url: '/v1' }] }).message.path).toBe('/own'))
})
