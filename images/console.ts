import { rm, readdir, readFile, writeFile } from 'node:fs/promises'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'
import { build } from 'esbuild'

const SOURCE = join(import.meta.dirname, '../console')

/**
 * Builds the console into `out`: `index.html`, and `assets/` with files whose names change with their content. Each file has a `.gz` and a `.br` copy beside it.
 */
export async function buildConsole(out: string): Promise<void> {
  await rm(out, { recursive: true, force: true })
  await build({
    entryPoints: { main: join(SOURCE, 'app/main.tsx'), style: join(SOURCE, 'style/main.css') },
    outdir: join(out, 'assets'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    tsconfig: join(SOURCE, 'tsconfig.json'),
    logLevel: 'warning',
  })
  const files = await readdir(join(out, 'assets'))
  const built = (name: string, extension: string): string => {
    const file = files.find((candidate) => candidate.startsWith(`${name}-`) && candidate.endsWith(extension))
    if (file === undefined) throw new Error(`the build of the console has no ${name}${extension}`)
    return `/assets/${file}`
  }
  const html = (await readFile(join(SOURCE, 'index.html'), 'utf8'))
    .replace('/assets/style.css', built('style', '.css'))
    .replace('/assets/main.js', built('main', '.js'))
  await writeFile(join(out, 'index.html'), html)
  for (const name of ['index.html', ...files.map((file) => `assets/${file}`)]) await compress(join(out, name))
}

async function compress(file: string): Promise<void> {
  const content = await readFile(file)
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length }
  await writeFile(`${file}.br`, await promisify(brotliCompress)(content, { params }))
  await writeFile(`${file}.gz`, await promisify(gzip)(content, { level: 9 }))
}

/** Builds the console unless `out` holds the build of the same sources. Returns whether it was built. */
export async function updateConsole(out: string): Promise<boolean> {
  const stamp = join(out, '.sources')
  const sources = await digestSources()
  if ((await readFile(stamp, 'utf8').catch(() => '')) === sources) return false
  await buildConsole(out)
  await writeFile(stamp, sources)
  return true
}

/** A digest of everything that the build reads. */
async function digestSources(): Promise<string> {
  const entries = (await readdir(SOURCE, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const files = entries.map(({ parentPath, name }) => join(parentPath, name)).toSorted()
  const hash = createHash('sha256')
  for (const path of [...files, join(SOURCE, '../package-lock.json')]) hash.update(await readFile(path))
  return hash.digest('hex')
}
