import { isJsonObject, type JsonObject } from '#api/json/index.ts'
import type { OpenApiTool, ResolvedMcpOpenApi } from '#gen/config/types.ts'
import type { McpOpenApi } from '#gen/v1alpha1/types.ts'
import { DocumentError, short, type OpenApiDocument } from './document.ts'
import { ArgumentNames, METHODS, methodOf, readBody, readParameters, readResultSchema, type Body, type Parameter } from './parameters.ts'
import { cut, SchemaConverter, type Converted } from './schema.ts'
import { Servers, trimmed } from './servers.ts'
import { compileMatch, compileSelection, distinctName, toolName, type OperationName } from './select.ts'

/** Most operations that become tools. Lists of clients are read at once, and models cannot use more. */
const MAX_TOOLS = 2000
/** Most operations of a document. */
const MAX_OPERATIONS = 10_000
const MAX_INPUT_CHARS = 64 * 1024
const MAX_OUTPUT_CHARS = 16 * 1024
const MAX_DESCRIPTION = 2000
const MAX_ARGUMENT_DESCRIPTION = 1000
const MAX_INSTRUCTIONS = 2000
/** Operations that a problem names. */
const MAX_NAMED = 3

/** The tools of a document, and what is wrong with parts of it. */
export interface CompiledOpenApi {
  readonly message: ResolvedMcpOpenApi
  readonly problems: readonly string[]
}

interface Operation extends OperationName {
  readonly method: OpenApiTool['method']
  readonly path: string
  readonly item: JsonObject
  readonly definition: JsonObject
}

/**
 * Compiles the operations of a document that `settings` select. Operations that cannot become tools are left out and reported. Throws a
 * DocumentError if the document is unusable.
 */
export function compileOpenApi(
  document: OpenApiDocument,
  settings: Omit<McpOpenApi, 'configMapRef' | 'url' | 'refreshInterval' | 'backendRef'>,
): CompiledOpenApi {
  const info = isJsonObject(document.root['info']) ? document.root['info'] : {}
  const failed: string[] = []
  const all = readOperations(document, failed)
  const isSelected = compileSelection(settings)
  const selected = all.filter(isSelected)
  if (selected.length > MAX_TOOLS)
    throw new DocumentError(`${selected.length} operations are selected, at most ${MAX_TOOLS} can be tools; select fewer with include`)
  const converter = new SchemaConverter(document)
  const servers = settings.path === undefined ? new Servers(document, selected) : undefined
  const tools = selected.flatMap((operation) => {
    try {
      return [{ operation, compiled: compileTool(document, converter, operation), base: servers?.basePathOf(operation) ?? '' }]
    } catch (error) {
      if (!(error instanceof DocumentError)) throw error
      failed.push(`${short(operation.key)} (${error.message})`)
      return []
    }
  })
  const names = nameTools(
    tools.map(({ operation }) => operation),
    settings.rename ?? {},
  )
  const title = typeof info['title'] === 'string' ? cut(info['title'], 200) : ''
  const { description } = info
  // Operations with servers of their own may have other base paths than the document.
  const isOne = tools.every(({ base }) => base === (servers?.basePath ?? ''))
  return {
    message: {
      title,
      version: typeof info['version'] === 'string' ? cut(info['version'], 100) : '',
      ...(typeof description === 'string' && description !== '' ? { instructions: cut(description, MAX_INSTRUCTIONS) } : {}),
      path: settings.path === undefined ? (isOne ? (servers?.basePath ?? '') : '') : trimmed(settings.path),
      tools: tools.map(({ compiled: { definition, ...tool }, base }, index) => {
        const name = names.get(index) ?? ''
        return { name, definition: JSON.stringify({ name, ...definition }), ...tool, path: isOne ? tool.path : `${base}${tool.path}` }
      }),
    },
    problems: [...describeFailed(failed), ...findUnused(all, selected, settings)],
  }
}

function describeFailed(failed: readonly string[]): string[] {
  if (failed.length === 0) return []
  const more = failed.length > MAX_NAMED ? ` and ${failed.length - MAX_NAMED} more` : ''
  return [`${failed.length === 1 ? 'an operation is' : `${failed.length} operations are`} no tool: ${failed.slice(0, MAX_NAMED).join(', ')}${more}`]
}

/** Settings without effect: usually an operation was renamed in the document. */
function findUnused(
  all: readonly Operation[],
  selected: readonly Operation[],
  { include = [], exclude = [], rename = {} }: Pick<McpOpenApi, 'include' | 'exclude' | 'rename'>,
) {
  const unused = (field: string, entries: readonly (typeof include)[number][]): string[] =>
    entries.flatMap((entry, index) => (all.some(compileMatch(entry)) ? [] : [`${field}.${index} matches no operation`]))
  const known = new Set(selected.flatMap(({ id, key }) => (id === undefined ? [key] : [id, key])))
  return [
    ...unused('include', include),
    ...unused('exclude', exclude),
    ...Object.keys(rename).flatMap((name) => (known.has(name) ? [] : [`rename has ${short(name)}, which is no operation that is selected`])),
    ...(selected.length === 0 && include.length === 0 ? ['no operation is selected'] : []),
  ]
}

/** All operations. Paths that cannot be read are added to `failed`. */
function readOperations(document: OpenApiDocument, failed: string[]): Operation[] {
  const operations = Object.entries(document.root['paths'] as JsonObject).flatMap(([path, given]) => {
    if (!path.startsWith('/')) return []
    const item = resolveItem(document, path, given, failed)
    return METHODS.flatMap((method) => {
      const definition = item[method]
      if (!isJsonObject(definition)) return []
      const { operationId, tags } = definition
      return [
        {
          key: `${methodOf(method)} ${path}`,
          id: typeof operationId === 'string' && operationId !== '' ? operationId : undefined,
          tags: Array.isArray(tags) ? tags.filter((tag) => typeof tag === 'string') : [],
          method: methodOf(method),
          path,
          item,
          definition,
        },
      ]
    })
  })
  if (operations.length > MAX_OPERATIONS) throw new DocumentError(`it has ${operations.length} operations, at most ${MAX_OPERATIONS} are supported`)
  return operations
}

function resolveItem(document: OpenApiDocument, path: string, item: unknown, failed: string[]): JsonObject {
  try {
    return document.resolve(item)
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error
    failed.push(`${short(path)} (${error.message})`)
    return {}
  }
}

/** The names of tools, by index. Operations that would have the same name all get a distinct one, so that names depend on no order. */
function nameTools(operations: readonly Operation[], rename: Readonly<Record<string, string>>): Map<number, string> {
  const given = operations.map((operation) => {
    for (const name of [operation.id, operation.key]) if (name !== undefined && Object.hasOwn(rename, name)) return rename[name]
    return undefined
  })
  const counts = new Map<string, number>()
  const count = (name: string): void => void counts.set(name, (counts.get(name) ?? 0) + 1)
  const wanted = operations.map((operation, index) => given[index] ?? toolName(operation))
  wanted.forEach(count)
  return new Map(
    operations.map((operation, index) => [index, counts.get(wanted[index] ?? '') === 1 ? (wanted[index] ?? '') : distinctName(wanted[index] ?? '', operation)]),
  )
}

type CompiledTool = Omit<OpenApiTool, 'name' | 'definition'> & { readonly definition: JsonObject }

function compileTool(document: OpenApiDocument, converter: SchemaConverter, { method, path, item, definition }: Operation): CompiledTool {
  if (!/^\/[^?#\s\\]*$/.test(path)) throw new DocumentError('its path is not one of a URL')
  const names = new ArgumentNames()
  const parameters = readParameters(document, path, [item['parameters'], definition['parameters']], names)
  const body = method === 'GET' ? undefined : readBody(document, definition['requestBody'], names)
  const result = readResultSchema(document, definition['responses'])
  const output = result === undefined ? undefined : outputSchema(converter, result)
  return {
    method,
    path,
    parameters: parameters.map(({ message }) => message),
    ...(body === undefined ? {} : { body: body.message }),
    definition: {
      ...titleOf(definition),
      description: describe(definition, `${method} ${path}`),
      inputSchema: inputSchema(converter, [...parameters, ...(body === undefined ? [] : [body])]),
      ...(output === undefined ? {} : { outputSchema: output }),
      annotations: annotationsOf(method),
    },
  }
}

const titleOf = ({ summary }: JsonObject): JsonObject => (typeof summary === 'string' && summary !== '' ? { title: cut(summary, 200) } : {})

function describe({ summary, description, deprecated }: JsonObject, key: string): string {
  const texts = [summary, description === summary ? undefined : description].filter((text) => typeof text === 'string' && text !== '')
  return cut(`${deprecated === true ? 'Deprecated. ' : ''}${texts.length === 0 ? key : texts.join('\n\n')}`, MAX_DESCRIPTION)
}

/** Hints of MCP by the semantics of HTTP (RFC 9110 §9.2). POST and PATCH may do anything, which is what the absence of hints means. */
function annotationsOf(method: OpenApiTool['method']): JsonObject {
  if (method === 'GET') return { readOnlyHint: true }
  if (method === 'PUT') return { readOnlyHint: false, idempotentHint: true }
  if (method === 'DELETE') return { readOnlyHint: false, destructiveHint: true, idempotentHint: true }
  return { readOnlyHint: false }
}

function inputSchema(converter: SchemaConverter, inputs: readonly (Parameter | Body)[]): JsonObject {
  const full = joinInputs(inputs, (schema) => converter.convert(schema, 'input'))
  if (JSON.stringify(full).length <= MAX_INPUT_CHARS) return full
  // The API validates what the schema does not.
  return joinInputs(inputs, () => undefined)
}

function joinInputs(inputs: readonly (Parameter | Body)[], convert: (schema: unknown) => Converted | undefined): JsonObject {
  const definitions: Record<string, unknown> = {}
  const properties = inputs.map(({ schema, description, message }, index) => {
    const converted = schema === undefined ? { schema: {}, definitions: {} } : convert(schema)
    const property = converted === undefined ? {} : renameDefinitions(converted, definitions, index)
    return [message.argument, description === undefined ? property : { ...property, description: cut(description, MAX_ARGUMENT_DESCRIPTION) }] as const
  })
  const required = inputs.filter(({ isRequired }) => isRequired).map(({ message }) => message.argument)
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
    ...(Object.keys(definitions).length > 0 ? { $defs: definitions } : {}),
  }
}

/** Adds the definitions of one argument to those of the tool. Definitions of one name may differ between arguments. */
function renameDefinitions({ schema, definitions }: Converted, all: Record<string, unknown>, index: number): JsonObject {
  const clashes = Object.entries(definitions).some(([name, value]) => name in all && JSON.stringify(all[name]) !== JSON.stringify(value))
  if (!clashes) {
    Object.assign(all, definitions)
    return schema
  }
  const renamed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(renamed)
    if (!isJsonObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, child]) => [
        key,
        key === '$ref' && typeof child === 'string' ? child.replace('#/$defs/', `#/$defs/${index}_`) : renamed(child),
      ]),
    )
  }
  for (const [name, value] of Object.entries(definitions)) all[`${index}_${name}`] = renamed(value)
  return renamed(schema) as JsonObject
}

/** MCP requires the type object at the root. Large schemas are left out: they cost more tokens than they help. */
function outputSchema(converter: SchemaConverter, schema: unknown): JsonObject | undefined {
  const converted = converter.convert(schema, 'output')
  if (converted === undefined) return undefined
  const { $ref, ...root } = converted.schema
  const output = {
    ...root,
    ...($ref === undefined ? {} : { allOf: [{ $ref }] }),
    type: 'object',
    ...(Object.keys(converted.definitions).length > 0 ? { $defs: converted.definitions } : {}),
  }
  return JSON.stringify(output).length <= MAX_OUTPUT_CHARS ? output : undefined
}
