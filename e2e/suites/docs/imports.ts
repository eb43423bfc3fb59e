import { packageOf } from '../house/check.ts'
import { parseSource } from '../house/imports.ts'

/** One import of an npm package in a source file. */
export interface PackageImport {
  /** `@scope/name` or `name`, without a path; `node` for Node's own modules. */
  readonly name: string
  /** The import is erased when Node runs the file. */
  readonly isType: boolean
}

/**
 * Lists the packages that a TypeScript or JavaScript file imports: statically, dynamically, by re-export, by `import.meta.resolve`,
 * or by a path below `node_modules/`.
 */
export function readPackageImports(path: string, text: string): PackageImport[] {
  const written = parseSource(path, text).imports.map(({ specifier, isType }) => ({ specifier, isType }))
  const named = [/import\.meta\.resolve\('([^']+)'\)/g, /(?:\.\.\/)+node_modules\/((?:@[\w.-]+\/)?[\w.-]+)\//g]
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .map(([, specifier = '']) => ({ specifier, isType: false }))
  return [...written, ...named]
    .filter(({ specifier }) => !/^[.#/]/.test(specifier))
    .map(({ specifier, isType }) => ({ name: specifier.startsWith('node:') ? 'node' : packageOf(specifier), isType }))
}
