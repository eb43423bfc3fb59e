import { parseSync, Visitor } from 'oxc-parser'
import { packageOf } from './check.ts'

/** Exports of modules that open connections or resolve names; `true`: all of them. */
const openers: Readonly<Record<string, readonly string[] | true>> = {
  'node:net': ['connect', 'createConnection', 'Socket', 'Stream'],
  'node:tls': ['connect', 'TLSSocket'],
  'node:http': ['request', 'get', 'ClientRequest', 'Agent', 'globalAgent', 'WebSocket'],
  'node:https': ['request', 'get', 'Agent', 'globalAgent'],
  'node:http2': ['connect'],
  'node:dns': true,
  'node:dgram': true,
  // It loads every other module, past the imports of the file.
  'node:module': ['createRequire', 'Module'],
  undici: true,
  ws: true,
  pg: true,
  '@redis/client': true,
  '@kubernetes/client-node': true,
  '@grpc/grpc-js': ['Client', 'credentials', 'makeClientConstructor', 'makeGenericClientConstructor', 'loadPackageDefinition'],
}
const globals = new Set(['fetch', 'WebSocket', 'EventSource', 'WebTransport', 'XMLHttpRequest'])
const holders = new Set(['globalThis', 'global', 'self', 'window'])
/** Members of `process` that load modules. */
const loaders = new Set(['getBuiltinModule', 'binding', '_linkedBinding', 'mainModule'])

/** `net`, `node:net` and `node:net/promises` are one module. */
function moduleOf(specifier: string): string {
  const name = packageOf(specifier)
  const node = `node:${name.replace(/^node:/, '').split('/', 1)[0]}`
  return Object.hasOwn(openers, node) ? node : name
}

/** What one source takes that can open a connection: `node:net#connect`, `node:net#*` for the whole module, `fetch`, `require`. */
export function findDials(path: string, text: string): readonly string[] {
  const { program, module, errors } = parseSync(path, text)
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`)
  const found = new Set<string>()
  const take = (specifier: string, name?: string): void => {
    const from = moduleOf(specifier)
    const names = Object.hasOwn(openers, from) ? openers[from] : undefined
    if (names === undefined || (names !== true && name !== undefined && !names.includes(name))) return
    found.add(`${from}#${name ?? '*'}`)
  }
  for (const { moduleRequest, entries } of module.staticImports)
    for (const { importName, isType } of entries) if (!isType) take(moduleRequest.value, importName.name ?? undefined)
  for (const { entries } of module.staticExports)
    for (const { moduleRequest, importName, isType } of entries) if (moduleRequest && !isType) take(moduleRequest.value, importName.name ?? undefined)
  // An import hides the global of its name.
  const imported = new Set(module.staticImports.flatMap(({ entries }) => entries.map(({ localName }) => localName.value)))
  // Names of members, which are no references.
  const keys = new Set<number>()
  const skip = (key: { readonly start: number }, isComputed: boolean): void => {
    if (!isComputed) keys.add(key.start)
  }
  new Visitor({
    ImportExpression({ source }) {
      if (source.type === 'Literal' && typeof source.value === 'string') take(source.value)
      else found.add('import()')
    },
    MemberExpression({ object, property, computed }) {
      skip(property, computed)
      const name = property.type === 'Identifier' && !computed ? property.name : property.type === 'Literal' ? String(property.value) : undefined
      if (name === undefined || object.type !== 'Identifier') return
      if (holders.has(object.name) && globals.has(name)) found.add(name)
      if (object.name === 'process' && loaders.has(name)) found.add(`process.${name}`)
    },
    VariableDeclarator({ id, init }) {
      if (id.type !== 'ObjectPattern' || init?.type !== 'Identifier' || !(holders.has(init.name) || init.name === 'process')) return
      const names = init.name === 'process' ? loaders : globals
      for (const property of id.properties)
        if (property.type === 'Property' && property.key.type === 'Identifier' && names.has(property.key.name)) found.add(property.key.name)
    },
    Property({ key, computed, shorthand }) {
      skip(key, computed || shorthand)
    },
    MethodDefinition: ({ key, computed }) => skip(key, computed),
    PropertyDefinition: ({ key, computed }) => skip(key, computed),
    TSPropertySignature: ({ key, computed }) => skip(key, computed),
    TSMethodSignature: ({ key, computed }) => skip(key, computed),
    Identifier({ name, start }) {
      if ((globals.has(name) || name === 'require') && !imported.has(name) && !keys.has(start)) found.add(name)
    },
  }).visit(program)
  return [...found].toSorted()
}
