import { createHash } from 'node:crypto'
import type { DescMethodUnary, DescService, FileRegistry } from '@bufbuild/protobuf'
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt'
import type { JsonObject } from '#api/json/index.ts'
import { compileRegex, isRegexError } from '#api/regex/index.ts'
import { commentOf } from './comments.ts'
import { DescriptorError } from './descriptors.ts'
import { schemaOf } from './schema.ts'

/** Which methods become tools, as globs over `package.Service/Method`; `*` stands for any text. */
export interface GrpcSelection {
  readonly include?: readonly string[] | undefined
  readonly exclude?: readonly string[] | undefined
}

/** A unary method as a tool. */
export interface GrpcTool {
  /** At most 64 letters, digits, `_` and `-`. */
  readonly name: string
  readonly method: DescMethodUnary
  /** The tool as in a list of tools, in JSON. */
  readonly definition: string
}

export interface CompiledGrpc {
  readonly tools: readonly GrpcTool[]
  /** Settings without effect. */
  readonly problems: readonly string[]
}

/** Most methods that can be tools. */
const MAX_TOOLS = 1000
const MAX_DESCRIPTION = 2000
/** Larger schemas cost more tokens than they help. The service checks arguments itself. */
const MAX_INPUT_CHARS = 64 * 1024
const MAX_OUTPUT_CHARS = 16 * 1024
const MAX_NAME = 64
/** Services of gRPC itself. */
const INFRASTRUCTURE = /^grpc\.(?:reflection|health|channelz)\./

/** Full names of services that can have tools, of all that a server offers. */
export const isOffered = (service: string): boolean => !INFRASTRUCTURE.test(service)

const keyOf = ({ parent, name }: { readonly parent: DescService; readonly name: string }): string => `${parent.typeName}/${name}`

/** Makes tools of the unary methods that are selected. Methods with streams are left out. Throws a DescriptorError. */
export function compileGrpcTools(registry: FileRegistry, { include, exclude = [] }: GrpcSelection): CompiledGrpc {
  const methods = servicesOf(registry).flatMap((service) => service.methods)
  const included = include?.map((glob) => compileGlob(glob))
  const excluded = exclude.map((glob) => compileGlob(glob))
  const selected = methods.filter((method) => {
    const key = keyOf(method)
    return (included === undefined || included.some((matches) => matches(key))) && !excluded.some((matches) => matches(key))
  })
  const unary = selected.filter((method): method is DescMethodUnary => method.methodKind === 'unary')
  if (unary.length > MAX_TOOLS) throw new DescriptorError(`${unary.length} methods are selected, at most ${MAX_TOOLS} can be tools; select fewer with include`)
  const names = nameTools(unary)
  const unused = (field: string, globs: readonly string[], all: readonly ((key: string) => boolean)[]): string[] =>
    globs.flatMap((glob, index) =>
      methods.some((method) => method.methodKind === 'unary' && all[index]?.(keyOf(method)))
        ? []
        : [`${field} ${JSON.stringify(glob)} matches no unary method`],
    )
  return {
    tools: unary.map((method) => {
      const name = names.get(method) ?? ''
      return { name, method, definition: JSON.stringify({ name, ...define(method) }) }
    }),
    problems: [
      ...unused('include', include ?? [], included ?? []),
      ...unused('exclude', exclude, excluded),
      ...(unary.length === 0 && include === undefined ? ['it has no unary method that is selected'] : []),
    ],
  }
}

function servicesOf(registry: FileRegistry): DescService[] {
  const services = new Map<string, DescService>()
  for (const file of registry.files) for (const service of file.services) if (isOffered(service.typeName)) services.set(service.typeName, service)
  return [...services.values()].toSorted((a, b) => (a.typeName < b.typeName ? -1 : 1))
}

/** Matching takes linear time. */
function compileGlob(glob: string): (key: string) => boolean {
  const regex = compileRegex(
    glob
      .split(/\*+/)
      .map((text) => text.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('(?s:.*)'),
  )
  // Globs are literal text and wildcards, within the limits of patterns.
  return (key) => !isRegexError(regex) && regex.test(key)
}

/** `Service_Method`; methods that would have the same name all get a digest of their full name, so that names depend on no order. */
function nameTools(methods: readonly DescMethodUnary[]): Map<DescMethodUnary, string> {
  const short = methods.map(({ parent, name }) => `${parent.name}_${name}`)
  const counts = new Map<string, number>()
  for (const name of short) counts.set(name, (counts.get(name) ?? 0) + 1)
  return new Map(
    methods.map((method, index) => {
      const name = short[index] ?? ''
      if (counts.get(name) === 1 && name.length <= MAX_NAME) return [method, name]
      const digest = createHash('sha256').update(keyOf(method)).digest('hex').slice(0, 8)
      return [method, `${name.slice(0, MAX_NAME - 9)}_${digest}`]
    }),
  )
}

function define(method: DescMethodUnary): JsonObject {
  const { input, output, idempotency, deprecated } = method
  const given = schemaOf(input, 'input')
  const result = schemaOf(output, 'output')
  const description = `${deprecated ? 'Deprecated. ' : ''}${commentOf(method) ?? keyOf(method)}`
  return {
    description: description.slice(0, MAX_DESCRIPTION).toWellFormed(),
    inputSchema: given !== undefined && JSON.stringify(given).length <= MAX_INPUT_CHARS ? given : { type: 'object' },
    ...(result !== undefined && JSON.stringify(result).length <= MAX_OUTPUT_CHARS && { outputSchema: result }),
    annotations: {
      readOnlyHint: idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS,
      ...(idempotency === MethodOptions_IdempotencyLevel.IDEMPOTENT && { idempotentHint: true }),
    },
  }
}
