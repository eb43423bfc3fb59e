import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { writeBase } from './base.ts'
import { buildConsole } from './console.ts'
import { bundleProgram, type ProgramName } from './bundle.ts'
import type { Engine } from './engine.ts'

const ROOT = join(import.meta.dirname, '..')
/** Program -> repository of its image. */
const repositories: Readonly<Record<ProgramName, string>> = { operator: 'controller', dataplane: 'proxy' }

/** An image in an archive. */
export interface BuiltImage {
  readonly image: string
  readonly archive: string
}

export interface BuildOptions {
  readonly engine: Engine
  /** First part of the names; empty for none. */
  readonly registry: string
  readonly tag: string
  /** Image with Node.js; default: built from the Node.js of this machine. */
  readonly base?: string | undefined
  /** Directory of the bundles. */
  readonly out: string
  /** Version that the programs report; default: that of package.json. */
  readonly version?: string
  /** Saves an image of a repository such as `proxy`; returns the path of the archive. */
  readonly save: (image: string, repository: string) => Promise<string>
}

/** Bundles the programs, builds their images and saves them. */
export async function* buildImages({ engine, registry, tag, out, save, version, ...options }: BuildOptions): AsyncGenerator<BuiltImage> {
  await mkdir(out, { recursive: true })
  const base = options.base ?? (await makeBase(engine, out))
  for (const [program, repository] of Object.entries(repositories) as [ProgramName, string][]) {
    const context = join(out, program)
    const image = `${registry === '' ? '' : `${registry}/`}${repository}:${tag}`
    await rm(context, { recursive: true, force: true })
    await bundleProgram(program, context, version === undefined ? {} : { version })
    if (program === 'dataplane') await buildConsole(join(context, 'console'))
    engine.build(image, { context, dockerfile: join(ROOT, program, 'Dockerfile'), args: { BASE: base } })
    yield { image, archive: await save(image, repository) }
  }
}

/** Builds the base image unless one for this version of Node.js exists. */
async function makeBase(engine: Engine, directory: string): Promise<string> {
  const image = `localhost/proxy-base:node${process.versions.node}`
  if (engine.has(image)) return image
  const context = join(directory, 'base')
  await writeBase(context)
  engine.build(image, { context, dockerfile: join(context, 'Dockerfile') })
  return image
}
