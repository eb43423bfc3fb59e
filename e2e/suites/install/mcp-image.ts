import { cp, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { ROOT, run } from './cluster.ts'
import { BASE, loadImage, withDirectory } from './image.ts'

/** Image name in `mcp.yaml`. */
export const IMAGE = 'localhost/mcp-servers:e2e'
const EVERYTHING = fileURLToPath(import.meta.resolve('@modelcontextprotocol/server-everything/dist/index.js'))

/** Image with nothing but a static program: the Go SDK's server, which speaks stdio. */
export const BARE_IMAGE = 'localhost/mcp-bare:e2e'
/** Builds the image of a program without any library, and loads it into the cluster. */
export async function loadBareServer(): Promise<void> {
  await withDirectory('mcp-bare-', async (directory) => {
    await run(join(ROOT, 'e2e/suites/mcp-matrix/go/build'), [])
    await cp(join(ROOT, '.tools/mcp-go/matrix'), join(directory, 'server'))
    await writeFile(join(directory, 'Dockerfile'), 'FROM scratch\nCOPY server /bin/server\nENV GREETING=hello PATH=/bin\nUSER 1234\n')
    await loadImage(BARE_IMAGE, directory)
  })
}

/** Builds an image with two MCP servers, `/servers/bin/documents.js` and server-everything as `/servers/bin/everything.js`, and loads it into the cluster. */
export async function loadMcpServers(): Promise<void> {
  await withDirectory('mcp-servers-', async (directory) => {
    await build({
      entryPoints: { documents: join(import.meta.dirname, 'mcp-server.ts'), everything: EVERYTHING },
      outdir: join(directory, 'servers/bin'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      target: 'node22',
      logLevel: 'error',
      banner: { js: "import { createRequire as bundleRequire } from 'node:module'; const require = bundleRequire(import.meta.url);" },
    })
    await writeFile(join(directory, 'servers/package.json'), '{ "type": "module" }\n')
    // server-everything reads these files from its own directory.
    await cp(join(dirname(EVERYTHING), 'docs'), join(directory, 'servers/docs'), { recursive: true })
    await writeFile(join(directory, 'Dockerfile'), `FROM ${BASE}\nCOPY servers /servers/\nENTRYPOINT ["node"]\n`)
    await loadImage(IMAGE, directory)
  })
}
