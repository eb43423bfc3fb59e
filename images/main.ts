import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import packageJson from '../package.json' with { type: 'json' }
import { writeBase } from './base.ts'
import { bundleProgram, type ProgramName } from './bundle.ts'
import { findEngine } from './engine.ts'

const USAGE = `usage: node images/main.ts [--registry HOST] [--tag TAG] [--base IMAGE] [--out DIR]

  --registry HOST  first part of the names (default localhost)
  --tag TAG        default v${packageJson.version}
  --base IMAGE     image with Node.js 24 or newer; default: built from the Node.js of this machine
  --out DIR        directory for archives and bundles (default dist/images)
`
const ROOT = join(import.meta.dirname, '..')
/** Program -> repository of its image. */
const repositories: Readonly<Record<ProgramName, string>> = { operator: 'controller', dataplane: 'proxy' }

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      registry: { type: 'string', default: 'localhost' },
      tag: { type: 'string', default: `v${packageJson.version}` },
      base: { type: 'string' },
      out: { type: 'string', default: join(ROOT, 'dist/images') },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return void process.stdout.write(USAGE)
  const { registry, tag, out } = values
  const engine = findEngine()
  await mkdir(out, { recursive: true })
  const base = values.base ?? (await makeBase(out))
  for (const [program, repository] of Object.entries(repositories) as [ProgramName, string][]) {
    const context = join(out, program)
    const archive = join(out, `${repository}.tar`)
    const image = `${registry === '' ? '' : `${registry}/`}${repository}:${tag}`
    await rm(context, { recursive: true, force: true })
    // buildah does not overwrite an archive.
    await rm(archive, { force: true })
    await bundleProgram(program, context)
    engine.build(image, { context, dockerfile: join(ROOT, program, 'Dockerfile'), args: { BASE: base } })
    engine.save(image, archive)
    process.stdout.write(`${image} ${archive}\n`)
  }

  /** Builds the base image unless one for this version of Node.js exists. */
  async function makeBase(directory: string): Promise<string> {
    const image = `localhost/proxy-base:node${process.versions.node}`
    if (engine.has(image)) return image
    const context = join(directory, 'base')
    await writeBase(context)
    engine.build(image, { context, dockerfile: join(context, 'Dockerfile') })
    return image
  }
}

try {
  await main()
} catch (error) {
  process.stderr.write(`images: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
