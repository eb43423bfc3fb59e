import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { parseSync, type Declaration, type Statement, type TSSignature, type TSType, type TSTypeName } from 'oxc-parser'
import type { JsonObject } from '../common/types.ts'

/**
 * For tests: JSON Schemas of the types that the vendors' SDKs declare, read from the pinned packages. Objects are closed, so that a member which the vendor
 * does not know is found.
 */

type Interface = Extract<Declaration, { type: 'TSInterfaceDeclaration' }>
type Alias = Extract<Declaration, { type: 'TSTypeAliasDeclaration' }>
type Enum = Extract<Declaration, { type: 'TSEnumDeclaration' }>

interface Module {
  readonly file: string
  /** By name with namespaces: `Message.Content`. */
  readonly types: Map<string, Interface | Alias | Enum>
  /** Local name -> file, for `import * as`; with the name for others. */
  readonly imports: Map<string, { readonly file: string; readonly name: string | undefined }>
}

interface Place {
  readonly module: Module
  /** The namespaces around. */
  readonly scope: readonly string[]
}

const require = createRequire(import.meta.url)
const modules = new Map<string, Module>()

/**
 * The schema of a type. `path` is a file of the package, without extension.
 *
 * @example
 * schemaOfType('openai', 'resources/shared', 'FunctionDefinition')
 */
export function schemaOfType(packageName: string, path: string, type: string): JsonObject {
  const base = (require.resolve.paths(packageName) ?? [])
    .map((directory) => join(directory, packageName))
    .find((directory) => existsSync(join(directory, `${path}.d.ts`)))
  if (base === undefined) throw new Error(`${packageName}/${path}.d.ts is missing`)
  const reader = new Reader()
  const root = reader.reference(type, { module: load(join(base, `${path}.d.ts`)), scope: [] })
  return { ...root, $defs: reader.finish() }
}

function load(file: string): Module {
  const known = modules.get(file)
  if (known) return known
  const module: Module = { file, types: new Map(), imports: new Map() }
  modules.set(file, module)
  const { program, errors } = parseSync(file, readFileSync(file, 'utf8'))
  if (errors[0]) throw new Error(`${file}: ${errors[0].message}`)
  for (const statement of program.body) collect(statement, module, '')
  return module
}

function collect(statement: Statement, module: Module, prefix: string): void {
  switch (statement.type) {
    case 'ImportDeclaration': {
      const source = statement.source.value
      if (!source.startsWith('.')) return
      const file = join(dirname(module.file), source.replace(/\.(js|mjs)$/, '.d.ts'))
      for (const one of statement.specifiers) {
        const name = one.type === 'ImportSpecifier' ? ('name' in one.imported ? one.imported.name : one.imported.value) : undefined
        module.imports.set(one.local.name, { file, name })
      }
      return
    }
    case 'ExportNamedDeclaration':
      if (statement.declaration) collect(statement.declaration, module, prefix)
      return
    case 'TSModuleDeclaration':
      if (statement.id.type !== 'Identifier' || statement.body?.type !== 'TSModuleBlock') return
      for (const inner of statement.body.body) collect(inner, module, `${prefix}${statement.id.name}.`)
      return
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
    case 'TSEnumDeclaration':
      module.types.set(prefix + statement.id.name, statement)
      return
    default:
  }
}

class Reader {
  readonly #definitions = new Map<string, JsonObject>()

  finish(): JsonObject {
    return Object.fromEntries(this.#definitions)
  }

  reference(name: string, place: Place): JsonObject {
    const found = find(name, place)
    if (found === undefined) throw new Error(`${place.module.file}: type ${name} is not declared`)
    const key = `${found.module.file.replace(/^.*node_modules\//, '')}:${found.name}`.replace(/[/~#]/g, '-')
    if (!this.#definitions.has(key)) {
      this.#definitions.set(key, {})
      this.#definitions.set(key, this.#declared(found.type, { module: found.module, scope: found.name.split('.').slice(0, -1) }))
    }
    return { $ref: `#/$defs/${key}` }
  }

  #declared(declared: Interface | Alias | Enum, place: Place): JsonObject {
    if (declared.type === 'TSTypeAliasDeclaration') return this.#type(declared.typeAnnotation, place)
    if (declared.type === 'TSEnumDeclaration')
      return { enum: declared.body.members.map(({ initializer }) => (initializer?.type === 'Literal' ? initializer.value : undefined)) }
    return this.#object(declared, place)
  }

  /** An interface with the members of those that it extends. */
  #object(declared: Interface, place: Place): JsonObject {
    const own = this.#members(declared.body.body, place)
    const bases = declared.extends.map(({ expression }) => {
      const base = find(nameOf(expression as TSTypeName), place)
      if (base?.type.type !== 'TSInterfaceDeclaration') throw new Error(`${place.module.file}: ${declared.id.name} extends no interface`)
      return this.#object(base.type, { module: base.module, scope: base.name.split('.').slice(0, -1) })
    })
    return [...bases, own].reduce((all, one) => merge(all, one))
  }

  #members(signatures: readonly TSSignature[], place: Place): JsonObject {
    const properties: Record<string, JsonObject> = {}
    const required: string[] = []
    let additionalProperties: unknown = false
    for (const signature of signatures) {
      if (signature.type === 'TSIndexSignature') additionalProperties = this.#type(signature.typeAnnotation.typeAnnotation, place)
      if (signature.type !== 'TSPropertySignature') continue
      const { key } = signature
      const name = key.type === 'Identifier' ? key.name : key.type === 'Literal' ? String(key.value) : undefined
      if (name === undefined) continue
      properties[name] = signature.typeAnnotation ? this.#type(signature.typeAnnotation.typeAnnotation, place) : {}
      if (!signature.optional) required.push(name)
    }
    return { type: 'object', properties, required, additionalProperties }
  }

  #type(type: TSType, place: Place): JsonObject {
    switch (type.type) {
      case 'TSStringKeyword':
        return { type: 'string' }
      case 'TSNumberKeyword':
        return { type: 'number' }
      case 'TSBooleanKeyword':
        return { type: 'boolean' }
      case 'TSNullKeyword':
        return { type: 'null' }
      case 'TSUnknownKeyword':
      case 'TSAnyKeyword':
        return {}
      case 'TSUndefinedKeyword':
        return { not: {} }
      case 'TSObjectKeyword':
        return { type: 'object' }
      case 'TSLiteralType':
        if (type.literal.type !== 'Literal') throw new Error(`${place.module.file}: a literal of type ${type.literal.type} has no schema`)
        return { const: type.literal.value }
      case 'TSArrayType':
        return { type: 'array', items: this.#type(type.elementType, place) }
      case 'TSParenthesizedType':
        return this.#type(type.typeAnnotation, place)
      case 'TSUnionType':
        return { anyOf: type.types.map((one) => this.#type(one, place)) }
      case 'TSIntersectionType':
        // `string & {}` is any string.
        return { allOf: type.types.filter((one) => one.type !== 'TSTypeLiteral' || one.members.length > 0).map((one) => this.#type(one, place)) }
      case 'TSTypeLiteral':
        return this.#members(type.members, place)
      case 'TSTypeReference':
        return this.#named(nameOf(type.typeName), type.typeArguments?.params ?? [], place)
      default:
        throw new Error(`${place.module.file}: a type of kind ${type.type} has no schema`)
    }
  }

  #named(name: string, args: readonly TSType[], place: Place): JsonObject {
    const [first, second] = args
    switch (name) {
      case 'Array':
      case 'ReadonlyArray':
        return { type: 'array', items: first ? this.#type(first, place) : {} }
      case 'Record':
        return { type: 'object', additionalProperties: second ? this.#type(second, place) : {} }
      default:
        return this.reference(name, place)
    }
  }
}

function merge(one: JsonObject, other: JsonObject): JsonObject {
  const { properties, required } = one as { properties: JsonObject; required: readonly string[] }
  const { properties: more, required: demanded } = other as { properties: JsonObject; required: readonly string[] }
  return { ...one, ...other, properties: { ...properties, ...more }, required: [...new Set([...required, ...demanded])] }
}

function nameOf(name: TSTypeName): string {
  if (name.type === 'Identifier') return name.name
  if (name.type === 'TSQualifiedName') return `${nameOf(name.left)}.${name.right.name}`
  // `extends A.B` is an expression.
  const { object, property } = name as unknown as { object: TSTypeName; property: { name: string } }
  return `${nameOf(object)}.${property.name}`
}

/** The declaration of a name: in the namespaces around, in the file, or in the file that it is imported from. */
function find(name: string, { module, scope }: Place): { readonly module: Module; readonly name: string; readonly type: Interface | Alias | Enum } | undefined {
  for (let depth = scope.length; depth >= 0; depth--) {
    const full = [...scope.slice(0, depth), name].join('.')
    const type = module.types.get(full)
    if (type) return { module, name: full, type }
  }
  const [first = '', ...rest] = name.split('.')
  const imported = module.imports.get(first)
  if (imported === undefined) return undefined
  const inner = [...(imported.name === undefined ? [] : [imported.name]), ...rest].join('.')
  return find(inner, { module: load(imported.file), scope: [] })
}
