import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stripTypes } from '#api/plugin/syntax.ts'
import { fail } from './common.ts'
import { packageDependencies, readModules } from './sources.ts'

/** Writes the npm package `@proxy/plugin`: types for editors, and the helper of tests. Replaces files of a previous version. Returns the files. Rejects with a ToolError. */
export async function writePackage(directory: string, version: string): Promise<string[]> {
  const exports: Record<string, object> = {}
  const files: Record<string, string> = {}
  for (const [name, source] of Object.entries(await readModules())) {
    // TypeScript finds index.ts by the name of index.js; other names need an option of the compiler.
    const text = source.replaceAll(/ from '\.\/(\w+)\.ts'/g, " from './$1.js'")
    files[`${name}.ts`] = text
    files[`${name}.js`] = stripTypes(text, `${name}.ts`).replaceAll(/[ \t]+$/gm, '')
    if (name !== 'config') exports[name === 'index' ? '.' : `./${name}`] = { types: `./${name}.ts`, default: `./${name}.js` }
  }
  const manifest = { name: '@proxy/plugin', version, private: true, type: 'module', exports, dependencies: packageDependencies }
  files['package.json'] = `${JSON.stringify(manifest, undefined, 2)}\n`
  await mkdir(directory, { recursive: true }).catch((error: Error) => fail(error.message))
  for (const [file, text] of Object.entries(files)) await writeFile(join(directory, file), text).catch((error: Error) => fail(error.message))
  return Object.keys(files).map((file) => join(directory, file))
}
