import { parseSync } from 'oxc-parser'

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
  const { module, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`)
  const imports: PackageImport[] = []
  const add = (specifier: string, isType: boolean): void => {
    if (/^[.#/]/.test(specifier)) return
    const name = specifier.startsWith('node:')
      ? 'node'
      : specifier
          .split('/')
          .slice(0, specifier.startsWith('@') ? 2 : 1)
          .join('/')
    imports.push({ name, isType })
  }
  for (const { moduleRequest, entries } of module.staticImports) add(moduleRequest.value, entries.length > 0 && entries.every(({ isType }) => isType))
  for (const { entries } of module.staticExports) for (const { moduleRequest, isType } of entries) if (moduleRequest) add(moduleRequest.value, isType)
  for (const { moduleRequest } of module.dynamicImports) {
    const specifier = /^(['"])(.*)\1$/.exec(text.slice(moduleRequest.start, moduleRequest.end))?.[2]
    if (specifier !== undefined) add(specifier, false)
  }
  for (const [, specifier = ''] of text.matchAll(/import\.meta\.resolve\('([^']+)'\)/g)) add(specifier, false)
  for (const [, specifier = ''] of text.matchAll(/(?:\.\.\/)+node_modules\/((?:@[\w.-]+\/)?[\w.-]+)\//g)) add(specifier, false)
  return imports
}
