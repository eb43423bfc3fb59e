import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import packageJson from '../package.json' with { type: 'json' }
import { buildImages } from './build.ts'
import { findEngine } from './engine.ts'

const USAGE = `usage: node images/main.ts [--registry HOST] [--tag TAG] [--base IMAGE] [--out DIR]

  --registry HOST  first part of the names (default localhost)
  --tag TAG        default v${packageJson.version}
  --base IMAGE     image with Node.js 24 or newer; default: built from the Node.js of this machine
  --out DIR        directory for archives and bundles (default dist/images)
`

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      registry: { type: 'string', default: 'localhost' },
      tag: { type: 'string', default: `v${packageJson.version}` },
      base: { type: 'string' },
      out: { type: 'string', default: join(import.meta.dirname, '../dist/images') },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return void process.stdout.write(USAGE)
  const { registry, tag, base, out } = values
  const engine = findEngine()
  const save = async (image: string, repository: string): Promise<string> => {
    const archive = join(out, `${repository}.tar`)
    // buildah does not overwrite an archive.
    await rm(archive, { force: true })
    engine.save(image, archive)
    return archive
  }
  for await (const { image, archive } of buildImages({ engine, registry, tag, base, out, save })) process.stdout.write(`${image} ${archive}\n`)
}

try {
  await main()
} catch (error) {
  process.stderr.write(`images: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
