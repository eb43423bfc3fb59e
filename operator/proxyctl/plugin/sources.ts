import { readFile } from 'node:fs/promises'
import packageJson from '../../../package.json' with { type: 'json' }

/** Modules of the npm package `@proxy/plugin`. */
export type ModuleName = 'index' | 'testing'

/** Packages that it needs, and their versions. */
export const packageDependencies = { ajv: packageJson.dependencies.ajv, hono: packageJson.dependencies.hono }

const urlOf = (name: ModuleName): URL => new URL(`../../../api/plugin/${name}.ts`, import.meta.url)

/** Source of each module in TypeScript. images/bundle.ts replaces this file in the executable by one that contains them. */
export async function readModules(): Promise<Readonly<Record<ModuleName, string>>> {
  return { index: await readFile(urlOf('index'), 'utf8'), testing: await readFile(urlOf('testing'), 'utf8') }
}

/** URLs of modules that Node can run: those of the package, and `bench.ts`. The executable writes them to `directory`, with everything that they import. */
export async function placeModules(_directory: string): Promise<Readonly<Record<ModuleName | 'bench', string>>> {
  return { index: urlOf('index').href, testing: urlOf('testing').href, bench: new URL('./bench.ts', import.meta.url).href }
}
