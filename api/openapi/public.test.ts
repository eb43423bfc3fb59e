import { describe, expect, test } from '@jest/globals'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { compileOpenApi } from './compile.ts'
import { parseDocument } from './document.ts'

interface Definition {
  readonly name: string
  readonly inputSchema: { readonly properties: Readonly<Record<string, object>>; readonly required?: readonly string[]; readonly $defs?: object }
  readonly outputSchema?: object
}

function compile(file: string, settings: Parameters<typeof compileOpenApi>[1] = {}) {
  const { message, problems } = compileOpenApi(parseDocument(readFileSync(join(import.meta.dirname, 'testdata', file))), settings)
  return { message, problems, definitions: new Map(message.tools.map(({ name, definition }) => [name, JSON.parse(definition) as Definition])) }
}

describe('public documents', () => {
  test.each([
    ['github.json.gz', 92, 40],
    ['kubernetes.json.gz', 13, 7],
  ])('all operations of %s become %d tools, %d of them with an output schema', (file, count, withOutput) => {
    const { message, problems, definitions } = compile(file)
    expect([problems, message.tools.length, definitions.size]).toEqual([[], count, count])
    expect([...definitions.values()].filter(({ outputSchema }) => outputSchema !== undefined).length).toBe(withOutput)
    const ajv = new Ajv2020({ strict: false, validateFormats: false })
    for (const { name, inputSchema, outputSchema } of definitions.values()) {
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      for (const argument of Object.keys(inputSchema.properties)) expect(argument).toMatch(/^[a-zA-Z0-9_.-]{1,64}$/)
      ajv.compile(inputSchema)
      if (outputSchema !== undefined) ajv.compile(outputSchema)
    }
  })

  test('a tool of GitHub has the arguments of its operation', () => {
    const { message, definitions } = compile('github.json.gz', { include: [{ tag: 'issues', path: 'POST /**' }, { operationId: 'repos/get-content' }] })
    expect(definitions.get('repos_get-content')?.inputSchema).toMatchObject({ required: ['owner', 'repo', 'path'], properties: { ref: { type: 'string' } } })
    expect(message.tools.find(({ name }) => name === 'issues_create')).toMatchObject({
      method: 'POST',
      path: '/repos/{owner}/{repo}/issues',
      body: { kind: 'json' },
    })
    const issue = { owner: 'o', repo: 'r', body: { title: 'T', labels: ['bug', { name: 'x' }], assignees: ['a'] } }
    const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile(definitions.get('issues_create')?.inputSchema ?? {})
    expect([isValid(issue), isValid({ ...issue, body: { labels: [] } }), isValid({ ...issue, path: 'x' })]).toEqual([true, false, false])
  })

  test('bodies that are no JSON have their kind', () => {
    const { message } = compile('github.json.gz', { include: [{ operationId: 'markdown/render-raw' }, { operationId: 'markdown/render' }] })
    expect(message.tools.map(({ name, body }) => [name, body?.kind])).toEqual([
      ['markdown_render', 'json'],
      ['markdown_render-raw', 'text'],
    ])
  })

  test('recursive schemas of Kubernetes are definitions', () => {
    const { definitions } = compile('kubernetes.json.gz')
    const { inputSchema = {} } = definitions.get('createApiextensionsV1CustomResourceDefinition') ?? {}
    const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile(inputSchema)
    const bodyOf = (schema: object) => ({
      body: {
        metadata: { name: 'x' },
        spec: {
          group: 'g',
          scope: 'Namespaced',
          names: { kind: 'X', plural: 'xs' },
          versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
        },
      },
    })
    expect(isValid(bodyOf({ properties: { a: { properties: { b: { type: 'string' } } } } }))).toBe(true)
    expect(isValid(bodyOf({ properties: { a: { properties: { b: { type: 1 } } } } }))).toBe(false)
  })
})
