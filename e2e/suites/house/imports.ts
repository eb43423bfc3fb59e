import { parseSync, Visitor } from 'oxc-parser'

/** One import of a source file; `isType` is true if it is erased when the file runs. */
export interface Import {
  /** As written: `./a.ts`, `#api/errors.ts`, `node:fs`, `hono`. */
  readonly specifier: string
  readonly isType: boolean
  /** Names imported from the module; empty for dynamic imports and `import * as`. */
  readonly names: readonly string[]
}

export interface ParsedSource {
  readonly imports: readonly Import[]
  /** Uses of the clock, randomness, timers, the environment and the network, as written. */
  readonly impurities: readonly string[]
}

/** Members of global objects that make a function depend on more than its arguments. */
const impureMembers: Readonly<Record<string, readonly string[]>> = {
  Date: ['now'],
  Math: ['random'],
  performance: ['now', 'timeOrigin', 'mark'],
  process: ['env', 'hrtime', 'argv', 'exit', 'cwd', 'stdout', 'stderr', 'on', 'memoryUsage'],
  crypto: ['randomUUID', 'getRandomValues'],
}
const impureFunctions = new Set(['setTimeout', 'setInterval', 'setImmediate', 'fetch', 'queueMicrotask'])

/** Reads the imports and the impure calls of one TypeScript source. Throws if it does not parse. */
export function parseSource(path: string, text: string): ParsedSource {
  const { program, module, errors } = parseSync(path, text)
  const [error] = errors
  if (error !== undefined) throw new Error(`${path}: ${error.message}`)
  const imports: Import[] = [
    ...module.staticImports.map(({ moduleRequest, entries }) => ({
      specifier: moduleRequest.value,
      isType: entries.length > 0 && entries.every(({ isType }) => isType),
      names: entries.flatMap(({ importName }) => importName.name ?? []),
    })),
    ...module.staticExports
      .flatMap(({ entries }) => entries)
      .flatMap(({ moduleRequest, isType }) => (moduleRequest ? [{ specifier: moduleRequest.value, isType, names: [] }] : [])),
  ]
  const impurities: string[] = []
  new Visitor({
    ImportExpression({ source }) {
      if (source.type === 'Literal' && typeof source.value === 'string') imports.push({ specifier: source.value, isType: false, names: [] })
    },
    TSImportType({ source }) {
      imports.push({ specifier: source.value, isType: true, names: [] })
    },
    MemberExpression({ object, property }) {
      if (object.type !== 'Identifier' || property.type !== 'Identifier') return
      if (Object.hasOwn(impureMembers, object.name) && impureMembers[object.name]?.includes(property.name) === true)
        impurities.push(`${object.name}.${property.name}`)
    },
    CallExpression({ callee }) {
      if (callee.type === 'Identifier' && impureFunctions.has(callee.name)) impurities.push(callee.name)
    },
    NewExpression({ callee, arguments: given }) {
      if (callee.type === 'Identifier' && callee.name === 'Date' && given.length === 0) impurities.push('new Date()')
    },
  }).visit(program)
  return { imports, impurities }
}
