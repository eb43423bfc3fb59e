import { readFile } from 'node:fs/promises'
import packageJson from '../../../package.json' with { type: 'json' }

/** Modules of the npm package `@proxy/plugin`. */
export type ModuleName = 'index' | 'testing'
/** Its files: those modules, and what they import. */
export type FileName = ModuleName | 'config'

/** Packages that it needs, and their versions. */
export const packageDependencies = { ajv: packageJson.dependencies.ajv, hono: packageJson.dependencies.hono }

const urlOf = (name: FileName): URL => new URL(`../../../api/plugin/${name}.ts`, import.meta.url)

/** Source of each file in TypeScript. images/bundle.ts replaces this file in the executable by one that contains them. */
export async function readModules(): Promise<Readonly<Record<FileName, string>>> {
  const read = (name: FileName): Promise<string> => readFile(urlOf(name), 'utf8')
  return { index: await read('index'), testing: await read('testing'), config: await read('config') }
}

/** URLs of modules that Node can run: those of the package, and `bench.ts`. The executable writes them to `directory`, with everything that they import. */
export async function placeModules(_directory: string): Promise<Readonly<Record<ModuleName | 'bench', string>>> {
  return { index: urlOf('index').href, testing: urlOf('testing').href, bench: new URL('./bench.ts', import.meta.url).href }
}
